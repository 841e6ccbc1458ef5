# Fit a glm to every synthetic dataset and pool the results, in plain R.
#
#   Rscript pool.R PLACE ORIGINAL_ROWS FORMULA FAMILY
#   Rscript pool.R people-csv 5000 "ill ~ smoker + age" binomial
#
# PLACE is what `noisewise export` wrote as CSV: a folder, or with --stacked a .zip file. ORIGINAL_ROWS is the number of
# rows of the confidential table; HOW-TO-ANALYSE.txt tells it.

settings <- commandArgs(trailingOnly = TRUE)
place <- settings[1]
original_rows <- as.numeric(settings[2])
formula <- as.formula(settings[3])
family <- settings[4]

# Read. Every factor gets the levels of the schema, in its order, so that all datasets give the same coefficients.
zipped <- grepl("[.]zip$", place)
at <- function(name) if (zipped) unz(place, name) else file.path(place, name)
read <- function(file) read.csv(file, na.strings = "", check.names = FALSE)
levels_of <- read.csv(at("levels.csv"), colClasses = "character")
with_levels <- function(data) {
  for (name in unique(levels_of$column))
    data[[name]] <- factor(data[[name]], levels_of$level[levels_of$column == name])
  data
}
datasets <- if (zipped) {
  stacked <- read(at("datasets.csv"))
  split(stacked, stacked$.imp)
} else {
  lapply(list.files(place, "^dataset-[0-9]+[.]csv$", full.names = TRUE), read)
}
rows <- nrow(datasets[[1]])

# Fit. Rows with a missing value are left out by glm.
fits <- lapply(datasets, function(data)
  glm(formula, family, with_levels(data), control = glm.control(epsilon = 1e-12, maxit = 50)))
terms <- unique(unlist(lapply(fits, function(fit) names(coef(fit)))))    # glm drops a level without rows
estimates <- sapply(fits, function(fit) coef(fit)[terms])                # a column per dataset
variances <- sapply(fits, function(fit) diag(vcov(fit))[terms])          # those within each dataset

# Pool each coefficient over the datasets that determine it; an empty cell makes a variance missing or huge.
pool <- function(q, v) {
  used <- is.finite(q) & is.finite(v) & v < 1000
  q <- q[used]; v <- v[used]; m <- length(q)
  between <- var(q)
  within <- mean(v)
  total <- (1 + 1 / m) * between - within                   # a minus: the data are fully synthetic
  if (total <= 0) total <- rows / original_rows * within    # the fallback of Reiter (2002)
  df <- (m - 1) * (1 - within / ((1 + 1 / m) * between))^2
  se <- sqrt(total)
  c(estimate = mean(q), std.error = se, statistic = mean(q) / se, df = df,
    p.value = 2 * pt(-abs(mean(q) / se), df),
    conf.low = mean(q) - qt(0.975, df) * se, conf.high = mean(q) + qt(0.975, df) * se,
    datasets = m)
}
row <- function(matrix, term) if (length(terms) == 1) matrix else matrix[match(term, terms), ]
pooled <- t(sapply(terms, function(term) pool(row(estimates, term), row(variances, term))))
write.csv(data.frame(term = terms, pooled), stdout(), row.names = FALSE)
