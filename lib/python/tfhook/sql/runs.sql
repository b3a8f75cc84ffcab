-- View: the last state of each run. A run may have been collected while it went on and again later, or by two
-- collectors at once. Collectors' clocks may differ or be set, so the longest run is the last state.
SELECT run, batch, coalesce(team, '') AS team, coalesce(job, '') AS job, coalesce(cluster, '') AS cluster,
       coalesce(hardware, '') AS hardware, coalesce(settings, '') AS settings, coalesce(framework, '') AS framework,
       coalesce(image, software, '') AS image, ranks, gpus, start_utc, gpu_s, steps, step_median_s, ended, code,
       class, cause, confidence, path
FROM (SELECT *, row_number() OVER (PARTITION BY run ORDER BY coalesce(wall_s, 0) DESC, collected DESC, batch DESC) AS age FROM lake_runs) AS every
WHERE age = 1
