# The whole job from R, by reticulate; docs/how-to/r.md shows each part with its output.
#   Rscript from_r.R               three classes: assess, verdict, miscalibrated classes, recalibration, model file, optim
#   Rscript from_r.R hockey.csv    then two classes: BRcal's hockey data (columns y and x) beside glm and optim

# -- start
library(reticulate)
mcllo <- import("mcllo")
to_r <- function(a) {  # older reticulate does not convert arrays of NumPy 2
  if (!inherits(a, "numpy.ndarray")) return(a)
  array(unlist(a$ravel("F")$tolist()), dim = unlist(a$shape))
}

# -- data
set.seed(1)
classes <- c("cat", "dog", "fox")
said <- matrix(rgamma(3 * 6000, 1), ncol = 3)
said <- said / rowSums(said)
odds <- cbind(1.9 * (said[, 1] / said[, 3])^0.8, said[, 2] / said[, 3], 1)  # the truth
true <- odds / rowSums(odds)
u <- runif(nrow(true))
label <- classes[1 + (u > true[, 1]) + (u > true[, 1] + true[, 2])]
file <- tempfile(fileext = ".csv")
write.csv(setNames(data.frame(said, label), c(classes, "label")), file, row.names = FALSE)

# -- assess
d <- read.csv(file)
train <- d[1:4000, ]
new <- d[4001:6000, ]
a <- mcllo$assess(train[classes], train$label, seed = 0L)
cat(a$text(brief = TRUE), "\n")

# -- objects
cat("verdict:", a$verdict$kind, "\n")
cat("miscalibrated_classes:", unlist(iterate(a$miscalibrated_classes)), "\n")
cat("average error:", round(a$effect_size$mean_change, 3), "\n")
parameters <- data.frame(
  delta = to_r(a$fit$delta), se_delta = to_r(a$fit$se_delta),
  gamma = to_r(a$fit$gamma), se_gamma = to_r(a$fit$se_gamma), row.names = unlist(a$fit$compared))
print(round(parameters, 4))

# -- recalibration
calibrator <- mcllo$MCLLOCalibrator()$fit(train[classes], train$label)
recalibrated <- to_r(calibrator$predict_proba(new[classes]))
colnames(recalibrated) <- to_r(calibrator$classes_)
print(round(head(recalibrated, 3), 3))
cat("sums to 1:", all(abs(rowSums(recalibrated) - 1) < 1e-12), "\n")

# -- judge
predictions <- mcllo$Predictions$from_arrays
judged <- mcllo$compare(predictions(train[classes], train$label),
                        predictions(new[classes], new$label),
                        methods = list("mcllo", "temperature"), seed = 0L)
table <- do.call(rbind, lapply(judged$rows, function(row) data.frame(
  method = row$method, n = row$n, p = signif(row$pvalue, 2),
  p_corrected = if (is.null(row$pvalue_corrected)) NA else signif(row$pvalue_corrected, 2),
  log_loss = round(row$log_loss, 4), ece = round(row$ece, 4))))
print(table)

# -- model
model <- tempfile(fileext = ".json")
calibrator$save(model)
again <- mcllo$load_calibrator(model)
cat("same recalibration:", all(to_r(again$predict_proba(new[classes])) == recalibrated), "\n")

# -- optim
mcllo_optim <- function(x, y) {  # x: n x c probabilities, y: 1 .. c; the last class is the baseline
  k <- ncol(x) - 1
  l <- log(x[, 1:k, drop = FALSE] / x[, k + 1])
  nll <- function(theta) {
    eta <- cbind(sweep(sweep(l, 2, theta[k + 1:k], "*"), 2, theta[1:k], "+"), 0)  # Eq. (1)
    sum(log(rowSums(exp(eta))) - eta[cbind(seq_along(y), y)])                     # Eq. (5)
  }
  start <- rep(0:1, each = k)                                                     # tau = 0, gamma = 1
  fit <- optim(start, nll, method = "BFGS", hessian = TRUE, control = list(reltol = 1e-14))
  se <- sqrt(diag(solve(fit$hessian)))
  delta <- exp(fit$par[1:k])
  statistic <- 2 * (nll(start) - fit$value)                                       # Eq. (6)
  list(parameters = data.frame(delta = delta, se_delta = delta * se[1:k],
                               gamma = fit$par[k + 1:k], se_gamma = se[k + 1:k]),
       statistic = statistic, pvalue = pchisq(statistic, 2 * k, lower.tail = FALSE))
}
by_optim <- mcllo_optim(as.matrix(train[classes]), match(train$label, classes))
print(round(by_optim$parameters, 4))
cat("statistic:", round(by_optim$statistic, 3), "by optim,", round(a$test$statistic, 3), "by mcllo\n")
stopifnot(max(abs(as.matrix(by_optim$parameters) - as.matrix(parameters))) < 1e-4)

# -- two classes
path <- commandArgs(TRUE)
if (length(path) == 1) {
  hockey <- read.csv(path)
  games <- data.frame(home = hockey$x, away = 1 - hockey$x)
  won <- ifelse(hockey$y == 1, "home", "away")
  ours <- mcllo$assess(games, won, baseline = "away", seed = 0L)
  by_glm <- glm(y ~ qlogis(x), family = binomial, data = hockey,
                control = list(epsilon = 1e-14))
  by_optim <- mcllo_optim(as.matrix(games), 2 - hockey$y)
  null <- -2 * sum(dbinom(hockey$y, 1, hockey$x, log = TRUE))
  print(digits = 7, rbind(
    mcllo = c(delta = to_r(ours$fit$delta), gamma = to_r(ours$fit$gamma),
              statistic = ours$fit$statistic, p = pchisq(ours$fit$statistic, 2, lower.tail = FALSE)),
    glm = c(exp(coef(by_glm)[[1]]), coef(by_glm)[[2]], null - deviance(by_glm),
            pchisq(null - deviance(by_glm), 2, lower.tail = FALSE)),
    optim = c(by_optim$parameters$delta, by_optim$parameters$gamma,
              by_optim$statistic, by_optim$pvalue)))
  posterior <- mcllo$calibration_posterior(games, won, baseline = "away")
  cat("posterior probability of calibration:", round(posterior$posterior, 7), "\n")
}
