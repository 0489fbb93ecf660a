// The formula behind each view, as MathML, and where it comes from.

// A tiny notation: m("text", …) makes a row; single letters are variables, the rest operators.
const token = (text) =>
  /^[0-9.]+$/.test(text)
    ? `<mn>${text}</mn>`
    : /^[\p{L}′]+$/u.test(text)
      ? `<mi>${text}</mi>`
      : `<mo>${text.replace("<", "&lt;")}</mo>`;
const row = (...parts) =>
  `<mrow>${parts.map((part) => (/^<\w/.test(part) ? part : part.split(" ").filter(Boolean).map(token).join(""))).join("")}</mrow>`;
const sub = (a, b) => `<msub>${row(a)}${row(b)}</msub>`;
const sup = (a, b) => `<msup>${row(a)}${row(b)}</msup>`;
const both = (a, b, c) => `<msubsup>${row(a)}${row(b)}${row(c)}</msubsup>`;
const frac = (a, b) => `<mfrac>${row(a)}${row(b)}</mfrac>`;
const sum = (under) => `<munder><mo>∑</mo>${row(under)}</munder>`;
const block = (...parts) => `<math display="block">${row(...parts)}</math>`;

const w = sub("w", "s"),
  omega = sub("ω", "s"),
  t = sub("t", "s"),
  chi = sub("χ", "s");

export const FORMULAS = {
  curve: {
    html:
      `<p>One step on ½·MSE for the first layer, then ridge regression for the readout on fresh samples:</p>` +
      block(
        "Ŵ = W + η G ,",
        "<mspace width='1em'/>",
        "â = ",
        "<mi>argmin</mi>",
        frac("1", "m"),
        sup("‖ y − Φ a ‖", "2"),
        "+ λ ",
        sup("‖ a ‖", "2"),
        ",",
        "<mspace width='1em'/>",
        "Φ = σ ( X ",
        sup("Ŵ", "⊤"),
        ")",
      ) +
      `<p>The theory averages over the few directions that matter by a quadrature with nodes s and weights ωₛ. ` +
      `Each neuron i has a gain mᵢ, each node a susceptibility χₛ, and they solve</p>` +
      block(
        frac("1", sub("m", "i")),
        "= λ + ",
        sum("s"),
        w,
        sub("e", "is"),
        "+",
        both("b", "i", "2"),
        both("d", "i", "⊤"),
        "P",
        sub("d", "i"),
        ",",
        "<mspace width='1em'/>",
        w,
        "=",
        frac(omega, row("1 + ", chi)),
      ) +
      `<p>and the errors are averages of the local error tₛ = noise + bias² + variance:</p>` +
      block(
        "<mi>test</mi>",
        "=",
        sum("s"),
        omega,
        t,
        ",",
        "<mspace width='1em'/>",
        "<mi>train</mi>",
        "=",
        sum("s"),
        frac(row(omega, t), sup(row("( 1 + ", chi, ")"), "2")),
      ),
    more: "The book, chapters “The fixed point” and “The errors” (docs/book); on isotropic data also in closed form.",
    cite: ["demir2025", "cui2024", "moniri2024"],
  },
  map: {
    html:
      `<p>Strength β is shared between the learning rate and the spread of the data by the weighting α:</p>` +
      block(
        "η = ",
        sup("n", "βα"),
        ",",
        "<mspace width='1em'/>",
        "θ = ",
        sup("n", row("β ( 1 − α )")),
        ",",
        "<mspace width='1em'/>",
        "η θ = ",
        sup("n", "β"),
      ) +
      `<p>A polynomial of degree ℓ behaves like the activation, with the same errors as n grows, for</p>` +
      block(
        frac("ℓ − 1", "ℓ"),
        "< β <",
        frac("ℓ", "ℓ + 1"),
        ",",
        "<mspace width='1em'/>",
        "σ ( x ) ≈ ",
        "<munderover><mo>∑</mo><mrow><mi>j</mi><mo>=</mo><mn>0</mn></mrow><mi>ℓ</mi></munderover>",
        frac(sub("h", "j"), "j !"),
        sub("H", "j"),
        "( x ) + ",
        both("h", "ℓ", "*"),
        "z",
      ) +
      `<p>The gain is 1 − (test error)/(test error of the same network with η = 0).</p>`,
    more: "Degree rule: Theorem 2 of the first source. Isotropic data: the same with β = 2·exponent.",
    cite: ["demir2025", "mei2022"],
  },
  spectrum: {
    html:
      `<p>The step adds a matrix of rank one to the weights; through the activation it becomes one spike for each degree:</p>` +
      block(
        "Ŵ ≈ W + η ",
        sub("c", "1"),
        "a ",
        sup("β", "⊤"),
        ",",
        "<mspace width='1em'/>",
        "F ≈ ",
        sub("F", "0"),
        "+",
        "<munderover><mo>∑</mo><mrow><mi>k</mi><mo>=</mo><mn>1</mn></mrow><mi>ℓ</mi></munderover>",
        both("c", "1", "k"),
        sub("c", "k"),
        sup("η", "k"),
        sup(row("( X β )"), "∘ k"),
        sup(row("( ", sup("a", "∘ k"), ")"), "⊤"),
      ) +
      `<p>A spike leaves the bulk at x where the secular equation of the spikes M meets the resolvent of the bulk:</p>` +
      block(
        "<mi>det</mi>",
        "(",
        "I + ",
        sup("M", "⊤"),
        "R ( x ) M",
        ") = 0 ,",
        "<mspace width='1em'/>",
        "R ( x ) = ",
        sup(row("( ", frac("1", "m"), sub("F", "0"), both("F", "0", "⊤"), "− x )"), "−1"),
      ),
    more: "The book, chapter “Spectra” (docs/book/spectra.md). The labels ≈ Hₖ give the cosine of a spike's left singular vector with Hₖ(Xβ).",
    cite: ["moniri2024", "ba2022", "pennington2017"],
  },
  steps: {
    html:
      `<p>Every step takes the gradient at the weights before it, on fresh samples or on those of the first one; ` +
      `the readout stays at its initial value until the last step is made:</p>` +
      block(
        sub("W", "t + 1"),
        "=",
        sub("W", "t"),
        "+ η U ( ",
        sub("G", "t"),
        ") ,",
        "<mspace width='1em'/>",
        sub("G", "t"),
        "= −",
        sub("∇", "W"),
        frac("1", "2 m̃"),
        sup(row("‖ y − σ ( X̃ ", both("W", "t", "⊤"), ") a ‖"), "2"),
      ) +
      `<p>with U(G) = G for gradient descent, sign(G), UVᵀ of its singular vectors (Muon), and so on. Whatever the first ` +
      `layer is, the errors of the readout follow from it and the law of the data:</p>` +
      block(
        "M = ",
        sup(row("( λ + ", sum("s"), frac(row(omega, sub("Q", "s")), row("1 + ", chi)), ")"), "−1"),
        ",",
        "<mspace width='1em'/>",
        chi,
        "=",
        frac("1", "m"),
        "<mi>tr</mi>",
        sub("Q", "s"),
        "M ,",
        "<mspace width='1em'/>",
        sub("Q", "s"),
        "= E [ φ ",
        sup("φ", "⊤"),
        "| s ]",
      ),
    more: "The book, chapter “Several steps, and any first layer” (docs/book/any-first-layer.md): for drawn layers, and for a few fresh steps without a draw where that holds.",
    cite: ["demir2025", "cui2024"],
  },
  features: {
    html:
      `<p>Along a unit direction û let t be û·x, made standard Gaussian. Given t the preactivations are Gaussian, so ` +
      `that the mean output needs no further average:</p>` +
      block(
        "g ( t ) = E [ f ( x ) | t ] = ",
        sum("i"),
        sub("â", "i"),
        "<msub><mi>E</mi><mi>z</mi></msub>",
        "σ (",
        sub("μ", "i"),
        "+",
        sub("κ", "i"),
        "t + ",
        sub("r", "i"),
        "z )",
      ) +
      `<p>and its coefficients in the Hermite polynomials are</p>` +
      block(
        sub("c", "j"),
        "=",
        frac("1", "j !"),
        "E [ g ( t ) ",
        sub("H", "j"),
        "( t ) ] ,",
        "<mspace width='1em'/>",
        "E ",
        sup("g", "2"),
        "=",
        sum("j"),
        sup(row("( ", sub("c", "j"), "<msqrt><mrow><mi>j</mi><mo>!</mo></mrow></msqrt>", ")"), "2"),
      ) +
      `<p>so that the squares of the bars add up to the mean square of the function.</p>`,
    more: "The book, chapter “The errors” (docs/book/errors.md), what was learned.",
    cite: ["demir2025", "cui2024"],
  },
};
