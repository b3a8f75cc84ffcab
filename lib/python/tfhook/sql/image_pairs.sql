-- View: the same job under two images, one after the other. Times are compared as logarithms, so that a change is a
-- ratio. off: standard error; freedom: degrees of freedom.
SELECT *, log_s - old_log_s AS change,
       sqrt(greatest(spread * spread, 0.000001) / n + greatest(old_spread * old_spread, 0.000001) / old_n) AS off,
       n + old_n - 2 AS freedom
FROM (SELECT *, lag(image) OVER under AS old_image, lag(log_s) OVER under AS old_log_s,
             lag(spread) OVER under AS old_spread, lag(n) OVER under AS old_n
      FROM (SELECT team, job, settings, hardware, ranks, image, count(*) AS n, avg(ln(step_median_s)) AS log_s,
                   stddev_samp(ln(step_median_s)) AS spread, sum(gpu_s) AS gpu_s, min(start_utc) AS first_utc
            FROM runs
            WHERE step_median_s > 0 AND image <> ''
            GROUP BY team, job, settings, hardware, ranks, image
            HAVING count(*) >= 3) AS by_image
      WINDOW under AS (PARTITION BY team, job, settings, hardware, ranks ORDER BY first_utc, image)) AS pairs
WHERE old_image IS NOT NULL
