// The formula behind each view: a little TeX, turned into MathML, its letters defined below it, and where it comes from.

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** MathML of a formula: \frac{}{}, \sqrt{}, \text{}, \sum, \quad, sub- and superscripts. */
export function mathml(source) {
  const tokens = source.match(/\\[a-z]+|\d+|\p{L}\p{M}*|\S/gu);
  let i = 0;
  const group = () => {
    if (tokens[i] !== "{") return atom();
    i += 1;
    const parts = [];
    while (tokens[i] !== "}") parts.push(scripted());
    i += 1;
    return `<mrow>${parts.join("")}</mrow>`;
  };
  const atom = () => {
    const token = tokens[i++];
    if (token === "{") return (i -= 1), group();
    if (token === "\\frac") return `<mfrac>${group()}${group()}</mfrac>`;
    if (token === "\\sqrt") return `<msqrt>${group()}</msqrt>`;
    if (token === "\\text") return `<mi>${escaped(tokens.slice(i + 1, (i = tokens.indexOf("}", i) + 1) - 1).join(""))}</mi>`;
    if (token === "\\quad") return "<mspace width='1em'/>";
    if (token === "\\sum") return "<mo>∑</mo>";
    if (/^\d/.test(token)) return `<mn>${token}</mn>`;
    return /^\p{L}/u.test(token) ? `<mi>${token}</mi>` : `<mo stretchy="false">${escaped(token)}</mo>`;
  };
  const scripted = () => {
    const base = atom();
    const marks = {};
    while (tokens[i] === "_" || tokens[i] === "^") marks[tokens[i++]] = group();
    const [low, high] = [marks._, marks["^"]];
    if (base === "<mo>∑</mo>") return high ? `<munderover>${base}${low}${high}</munderover>` : `<munder>${base}${low}</munder>`;
    if (low && high) return `<msubsup>${base}${low}${high}</msubsup>`;
    return low ? `<msub>${base}${low}</msub>` : high ? `<msup>${base}${high}</msup>` : base;
  };
  const parts = [];
  while (i < tokens.length) parts.push(scripted());
  return `<math display="block"><mrow>${parts.join("")}</mrow></math>`;
}

const page = (more, cite, ...parts) => ({
  html: parts.map((part) => (part.startsWith("$") ? mathml(part.slice(1)) : `<p>${part}</p>`)).join(""), more, cite,
});

export const FORMULAS = {
  curve: page(
    "The book, chapters “The fixed point” and “The errors” (docs/book); on isotropic data also in closed form.",
    ["demir2025", "cui2024", "moniri2024"],
    "One step on ½·MSE for the first layer W, then ridge regression for the second layer a on m fresh samples:",
    "$Ŵ = W + η G , \\quad â = \\text{argmin} \\frac{1}{m} {‖ y − Φ a ‖}^2 + λ {‖ a ‖}^2 , \\quad Φ = σ ( X Ŵ^⊤ )",
    "G is minus the gradient, η the learning rate, X and y the samples and their labels, λ the ridge. The theory replaces the samples " +
      "by the few directions that matter: a quadrature with nodes ν and weights ω. It solves for a susceptibility χ of each node, how " +
      "much an output there follows its own label,",
    "$χ_ν = \\frac{1}{m} \\text{tr} Q_ν {( λ + \\sum_μ \\frac{ω_μ Q_μ}{1 + χ_μ} )}^{−1} , \\quad Q_ν = E [ φ φ^⊤ | ν ]",
    "where φ are the outputs of all neurons. Errors are means of the local error r = noise + bias² + variance:",
    "$\\text{test} = \\sum_ν ω_ν r_ν , \\quad \\text{train} = \\sum_ν \\frac{ω_ν r_ν}{{( 1 + χ_ν )}^2}",
  ),
  map: page(
    "Degree rule: Theorem 2 of the first source. Isotropic data: the same with β = 2·exponent.",
    ["demir2025", "mei2022"],
    "The strength β is shared between the learning rate η and the spread θ of the data by the weighting α; n is the number of inputs:",
    "$η = n^{β α} , \\quad θ = n^{β ( 1 − α )} , \\quad η θ = n^β",
    "A polynomial of degree ℓ in place of the activation σ gives the same errors as n grows, for",
    "$\\frac{ℓ − 1}{ℓ} < β < \\frac{ℓ}{ℓ + 1} , \\quad σ ( x ) ≈ \\sum_{j = 0}^ℓ \\frac{h_j}{j !} H_j ( x ) + h_ℓ^* z",
    "with the Hermite polynomials H, the coefficients h of σ, and independent noise z in place of what is left. " +
      "The gain is 1 − (test error)/(test error of the same network with η = 0).",
  ),
  spectrum: page(
    "The book, chapter “Spectra” (docs/book/spectra.md). The labels ≈ Hₖ give the cosine of a spike's left singular vector with Hₖ(Xξ).",
    ["moniri2024", "ba2022", "pennington2017"],
    "The step adds a matrix of rank one to the weights W: the second layer a before the step, times the teacher ξ. Through the " +
      "activation it becomes one spike of the features F for each degree k:",
    "$Ŵ ≈ W + η c_1 a ξ^⊤ , \\quad F ≈ F_0 + \\sum_{k = 1}^ℓ c_1^k c_k η^k {( X ξ )}^{∘ k} {( a^{∘ k} )}^⊤",
    "Here η is the learning rate, c are the Hermite coefficients of the activation, ∘k is a power of each entry. A spike leaves the bulk " +
      "F₀ at x where the matrix M of all spikes meets the resolvent R of the bulk:",
    "$\\text{det} ( I + M^⊤ R ( x ) M ) = 0 , \\quad R ( x ) = {( \\frac{1}{m} F_0 F_0^⊤ − x )}^{−1}",
  ),
  steps: page(
    "The book, chapter “Several steps, and any first layer” (docs/book/any-first-layer.md).",
    ["demir2025", "cui2024"],
    "Step number T takes the gradient at the weights before it, on fresh samples X̃ or on those of the first step; " +
      "the second layer a stays at its start until the last step is made:",
    "$W_{T + 1} = W_T + η U ( G_T ) , \\quad G_T = − ∇_W \\frac{1}{2 m̃} {‖ y − σ ( X̃ W_T^⊤ ) a ‖}^2",
    "with U(G) = G for gradient descent, sign(G), UVᵀ of its singular vectors (Muon), and so on. The errors after the fit follow from " +
      "the first layer, whatever it is, and the law of the data, as in the view Curve.",
  ),
  features: page(
    "The book, chapter “The errors” (docs/book/errors.md), what was learned.",
    ["demir2025", "cui2024"],
    "Let t be the position along a direction, in standard deviations. Given t what enters neuron i is Gaussian, with mean μ + κt and " +
      "standard deviation ρ, so that the mean output is a sum over neurons:",
    "$g ( t ) = E [ f ( x ) | t ] = \\sum_i â_i E_z σ ( μ_i + κ_i t + ρ_i z )",
    "Here z is standard Gaussian and â the second layer. Its coefficients in the Hermite polynomials H are",
    "$c_j = \\frac{1}{j !} E [ g ( t ) H_j ( t ) ] , \\quad E g^2 = \\sum_j {( c_j \\sqrt{j !} )}^2",
    "so that the squares of the bars add up to the mean square of the function.",
  ),
  neurons: page(
    "The book, chapter “What the step writes” (docs/book/what-the-step-writes.md).",
    ["dandi2023", "demir2025"],
    "The cosine of neuron i, a row of the first layer W, with a unit direction û is",
    "$\\text{cos}_i = \\frac{ŵ_i û}{‖ ŵ_i ‖} , \\quad ŵ_i ≈ w_i + η a_i g",
    "The step adds nearly the same vector g to all neurons, times the initial weight a of the neuron in the second layer, so neurons " +
      "with large a turn most, and those with negative a the other way.",
  ),
};
