"""How the error of the estimators falls with the number of rows: measured, and predicted beyond."""
