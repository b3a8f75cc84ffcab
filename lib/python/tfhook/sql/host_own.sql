-- View: a host's own time of a step in a run. Rank 0 is left out: it often logs and saves.
SELECT run, host, max(job) AS job, max(gpus) * max(steps) AS gpu_steps, sum(own_s * steps) / sum(steps) AS own_s
FROM ranks
WHERE own_s > 0 AND steps > 0 AND rank <> 0 AND host IS NOT NULL
GROUP BY run, host
