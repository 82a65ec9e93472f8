# MCLLO by R's optim, timed by itself, answering lines as benchmarks/race.py does:
#   Rscript optim.R numeric     BFGS with optim's own finite differences: how the paper's authors fitted it
#   Rscript optim.R analytic    the same with the gradient given
# Both: log odds, estimates from the identity, Hessian by optim (`hessian = TRUE`), standard errors from its inverse, p-value.
analytic <- commandArgs(TRUE)[1] == "analytic"

read_table <- function(folder) {
  shape <- scan(file.path(folder, "shape.txt"), quiet = TRUE)
  n <- shape[1]; c <- shape[2]
  x <- readBin(file.path(folder, "probs.bin"), "double", n * c)
  y <- readBin(file.path(folder, "y.bin"), "integer", n)
  list(x = matrix(x, n, c, byrow = TRUE), y = y)
}

fit <- function(x, y) {
  n <- nrow(x); k <- ncol(x) - 1
  l <- log(x[, 1:k, drop = FALSE] / x[, k + 1])
  hot <- outer(y, 0:(k - 1), "==")
  s <- c(colSums(hot), colSums(hot * l))
  odds <- function(theta) exp(rep(theta[1:k], each = n) + l * rep(theta[k + 1:k], each = n))
  value <- function(theta) sum(log1p(rowSums(odds(theta)))) - sum(theta * s)
  gradient <- function(theta) {
    e <- odds(theta)
    g <- e / (1 + rowSums(e))
    c(colSums(g), colSums(g * l)) - s
  }
  start <- rep(0:1, each = k)
  found <- optim(start, value, if (analytic) gradient, method = "BFGS", hessian = TRUE,
                 control = list(maxit = 1000))
  se <- sqrt(diag(solve(found$hessian)))
  p <- pchisq(2 * (value(start) - found$value), 2 * k, lower.tail = FALSE)
  list(nll = found$value, pvalue = p, se = se[1], steps = found$counts[[1]])
}

run <- function(table) {
  times <- numeric(0)
  while (length(times) == 0 || (sum(times) < 0.2 && length(times) < 25)) {  # a turn, as in race.py
    begin <- Sys.time()
    found <- fit(table$x, table$y)
    times <- c(times, as.numeric(difftime(Sys.time(), begin, units = "secs")))
  }
  seconds <- median(times)
  sprintf('{"seconds": %.9g, "nll": %.12g, "pvalue": %.12g, "se": %.12g, "steps": %d}',
          seconds, found$nll, found$pvalue, found$se, as.integer(found$steps))
}

lines <- file("stdin"); open(lines)
while (length(line <- readLines(lines, 1)) > 0) {
  words <- strsplit(line, " ", fixed = TRUE)[[1]]
  reply <- tryCatch(
    if (words[1] == "load") { table <- read_table(paste(words[-1], collapse = " ")); '{"ready": true}' }
    else run(table),
    error = function(e) sprintf('{"error": "%s"}', gsub('["\\\n]', " ", conditionMessage(e))))
  cat(reply, "\n", sep = ""); flush(stdout())
}
