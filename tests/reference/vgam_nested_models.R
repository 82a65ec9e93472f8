# The nested models fitted by VGAM: an independent reference for their likelihoods and estimates.
#   Rscript vgam_nested_models.R IN.csv OUT.json
# IN.csv: one column per class (probabilities, all > 0), then `y`, the 0-based class of each row; the last class is the baseline.
# A slope common to all equations is VGAM's `xij`: one term whose value differs from equation to equation. Given log odds
# (slope 1) are an offset. The full map is an ordinary multinomial logit on all log odds.
suppressMessages(library(VGAM))
args <- commandArgs(TRUE)
d <- read.csv(args[1], check.names = FALSE)
k <- ncol(d) - 1; q <- k - 1
X <- as.matrix(d[, 1:k])
Z <- log(X[, 1:q, drop = FALSE] / X[, k]); zs <- paste0("z", 1:q); colnames(Z) <- zs
df <- data.frame(y = factor(d$y, levels = 0:q), Z, zz = Z[, 1])
all <- paste(zs, collapse = "+")
own <- setNames(lapply(1:q, function(j) { e <- matrix(0, q, 1); e[j, 1] <- 1; e }), zs)
xij <- list(as.formula(paste("zz ~", all))); form2 <- as.formula(paste("~ zz +", all))
one <- list("zz" = matrix(1, q, 1)); free <- list("(Intercept)" = diag(q))
fam <- function() multinomial(refLevel = k)
fit <- function(formula, ...) vglm(formula, fam(), data = df, epsilon = 1e-12, maxit = 100, ...)
m <- list(
  temperature = fit(y ~ 0 + zz, xij = xij, form2 = form2, constraints = one),
  shift = fit(y ~ 1 + offset(Z)),
  scale = fit(as.formula(paste("y ~ 0 +", all)), constraints = own),
  common_slope = fit(y ~ zz, xij = xij, form2 = form2, constraints = c(free, one)),
  mcllo = fit(as.formula(paste("y ~", all)), constraints = c(free, own)),
  full = fit(as.formula(paste("y ~", all))))
num <- function(v) paste0("[", paste(sprintf("%.12g", v), collapse = ", "), "]")
one_model <- function(name) sprintf('  "%s": {"log_likelihood": %.10f, "coefficients": %s}', name,
                                    as.numeric(logLik(m[[name]])), num(coef(m[[name]])))
cat(sprintf('{"n": %d, "n_classes": %d,\n "models": {\n%s},\n "r": "%s", "vgam": "%s"}\n', nrow(d), k,
            paste(sapply(names(m), one_model), collapse = ",\n"), R.version.string,
            as.character(packageVersion("VGAM"))), file = args[2])
