"""A lake of a fleet that never was, with planted faults, written by DuckDB from hashes of run and rank: the same rows for the same
numbers, as many as wanted. `wrong` says whether answers found all that was planted, and nothing else.

usage: synthetic.py LAKE RUNS [MOST_HOSTS]     (10,000 runs of at most 32 hosts are 1.4 million rows of ranks)
"""
import datetime
import os
import sys
import uuid

import duckdb

DAYS = 28
FIRST = datetime.date(2026, 10, 26)
GPUS = 8        # of a host
JOBS = 60
FAMILIES = 5    # of images; a job keeps to one
HOSTS = 400
SLOW = {"node%04d" % n: over for n, over in ((17, 0.06), (101, 0.05), (233, 0.08), (390, 0.06))}
#: Families whose second or third image is slower by so much, and single jobs likewise.
SLOWER_IMAGE = {(2, 3): 0.04}
SLOWER_JOB = {(18, 2): 0.09}
#: Jobs that lose a share of their time to a cause at a line.
WASTE = {7: ("input.read", "/src/data.py", 88, 0.45), 23: ("transfer.h2d-pageable", "/src/feed.py", 12, 0.30),
         41: ("host.sync", "/src/train.py", 301, 0.25)}
CAUSES = ("input.read", "transfer.h2d-pageable", "host.launch", "host.sync", "communication.transfer")


def case(column, table, other):
    return "CASE %s %s ELSE %s END" % (column, " ".join("WHEN %s THEN %s" % one for one in table), other) if table else other


def gauss(*seed):
    """A normal number from a hash."""
    uniform = "((hash(%s) %% 1000000007) + 0.5) / 1000000007"
    return "(sqrt(-2 * ln(%s)) * cos(2 * pi() * %s))" % (uniform % ", ".join((*seed, "'a'")), uniform % ", ".join((*seed, "'b'")))


def view_of_runs(db, runs, most_hosts):
    slower_image = case("(family, version)", [("(%d, %d)" % key, 1 + over) for key, over in SLOWER_IMAGE.items()], "1.0")
    # An image's change stays.
    slower_job = " * ".join("(CASE WHEN j = %d AND version >= %d THEN %r ELSE 1.0 END)" % (*key, 1 + over)
                            for key, over in SLOWER_JOB.items())
    db.execute(f"""
        CREATE TEMP TABLE run AS
        SELECT *, 'fam' || family || ':v' || version AS image, 0.1 * (1 + j % 7) * {slower_image} * {slower_job} * exp(0.01 * {gauss("n", "1")}) AS step_s,
               hosts * {GPUS} AS ranks
        FROM (SELECT n, md5('run' || n) AS run, md5('batch' || n % 97) AS batch, (hash(n, 'j') % {JOBS})::INT AS j,
                     (hash(n, 'j') % {JOBS} % {FAMILIES})::INT AS family, (n * {DAYS} // {runs})::INT AS ago,
                     1 + (n * {DAYS} // {runs} * 3 // {DAYS})::INT AS version, 4 + (hash(n, 'j') % {JOBS} * 7 % {most_hosts - 3})::INT AS hosts,
                     (hash(n, 's') % {HOSTS})::INT AS base, 1000 + (hash(n, 'c') % 9000)::BIGINT AS steps
              FROM range({runs}) AS r(n))""")


# Starts are whole hours, so that several runs of a job began last: the engines must name the same one.
RUNS = """
    SELECT run, batch, TIMESTAMPTZ '2026-12-01 00:00:00+00' AS collected, md5('s' || n) AS source, md5('c' || n) AS content,
           'job' || j AS job, 0::INT AS attempt, 'c1' AS cluster, 'u' || j % 30 AS owner, 'team' || j % 12 AS team, image,
           'h100' AS hardware, MAP {{'team': 'team' || j % 12}} AS labels, {framework} AS framework, NULL::VARCHAR AS software,
           MAP {{}}::MAP(VARCHAR, VARCHAR) AS versions, md5('j' || j) AS settings, ranks::INT AS ranks, ranks::INT AS seen, hosts,
           ranks::INT AS gpus, TIMESTAMPTZ '{day} 00:00:00+00' + to_hours((hash(n, 't') % 24)::BIGINT) AS start_utc,
           step_s * steps AS wall_s, step_s * steps * ranks AS gpu_s, steps, step_s AS step_median_s, step_s * 1.1 AS step_p95_s,
           'exit' AS ended, CASE WHEN hash(n, 'e') % 20 = 0 THEN 1 ELSE 0 END::INT AS code, 'balanced' AS class,
           NULL::VARCHAR AS cause, 0.1::DOUBLE AS share, 'high' AS confidence, 'A' AS tier, 0::BIGINT AS lost_events,
           0.001::DOUBLE AS unattributed, '/runs/' || run AS path
    FROM run WHERE ago = {ago}"""
LOSSES = """
    SELECT run, batch, kind, cause, file, line, function, share * gpu_s AS blocked_gpu_s, 0.9 * share * gpu_s AS gain_gpu_s,
           0.8 * share * gpu_s AS gain_low_gpu_s, share * gpu_s AS gain_high_gpu_s
    FROM (SELECT run, batch, kind, cause, CASE WHEN kind = 'line' THEN file END AS file,
                 CASE WHEN kind = 'line' THEN line END::INT AS line, CASE WHEN kind = 'line' THEN 'step' END AS function,
                 CASE WHEN cause = wasted THEN waste ELSE 0.01 * (hash(n, cause) % 100) / 100 END AS share, step_s * steps * ranks AS gpu_s
          FROM (SELECT *, {wasted} AS wasted, {waste} AS waste, {file} AS file, {line} AS line FROM run WHERE ago = {ago}) AS r,
               (SELECT unnest({causes}) AS cause) AS c, (SELECT unnest(['cause', 'line']) AS kind) AS k
          WHERE kind = 'cause' OR cause = coalesce(wasted, 'host.launch'))"""
RANKS = """
    SELECT run, batch, rank::INT AS rank, host, steps, step_s, step_s * 0.8 * (1 + {over}) * (1 + 0.01 * {of_host}) * (1 + 0.005 * {of_rank})
             -- Decoys: rank 0 logs; a host is slow once; the first two hosts of job 5 are another stage of a pipeline.
             * (CASE WHEN rank = 0 THEN 1.2 ELSE 1.0 END) * (CASE WHEN n % 50 = 7 AND rank // 8 = 2 THEN 1.3 ELSE 1.0 END)
             * (CASE WHEN j = 5 AND rank // 8 < 2 THEN 1.1 ELSE 1.0 END) AS own_s,
           'balanced' AS class, NULL::VARCHAR AS cause, false AS straggler
    FROM (SELECT *, printf('node%04d', (base + rank // 8) % {hosts}) AS host
          FROM (SELECT *, unnest(range(ranks)) AS rank FROM run WHERE ago = {ago}) AS r) AS s"""


def write(lake, runs, most_hosts=32):
    """Returns the number of rows of ranks."""
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    view_of_runs(db, runs, most_hosts)

    def of_job(at, quote="'%s'", other="NULL"):
        return case("j", [(j, quote % waste[at]) for j, waste in WASTE.items()], other)
    for ago in range(DAYS):
        day = FIRST + datetime.timedelta(ago)
        texts = {
            "runs": RUNS.format(day=day, ago=ago, framework="['PyTorch', 'TensorFlow', 'JAX'][1 + j % 3]"),
            "losses": LOSSES.format(ago=ago, causes=list(CAUSES), wasted=of_job(0), file=of_job(1, other="'/src/launch.py'"), line=of_job(2, "%d", "j"),
                                    waste=of_job(3, "%r")),
            "ranks": RANKS.format(ago=ago, hosts=HOSTS, over=case("host", [("'%s'" % h, over) for h, over in SLOW.items()], "0.0"),
                                  of_host=gauss("n", "host"), of_rank=gauss("n", "rank")),
        }
        for table, text in texts.items():
            folder = os.path.join(lake, table, "day=%s" % day)
            os.makedirs(folder, exist_ok=True)
            db.execute("COPY (%s) TO '%s/%s.parquet' (FORMAT parquet, COMPRESSION zstd, KV_METADATA {'tfhook.lake': '1'})"
                       % (text, folder, uuid.uuid4().hex))
    return db.execute("SELECT sum(ranks) FROM run").fetchone()[0]


def wrong(rows):
    """What answers say of the planted faults that they should not, or do not say: a list of lines."""
    bad = []

    def same(what, found, planted):
        if found != planted:
            bad.append("%s: %s instead of %s" % (what, found, planted))
    same("slow hosts", sorted(row["host"] for row in rows["hosts"]), sorted(SLOW))
    for row in rows["hosts"]:
        if not 0.8 * SLOW.get(row["host"], 9) < row["slower"] < 1.2 * SLOW.get(row["host"], 0):
            bad.append("%s is slower by %s" % (row["host"], row["slower"]))
    pairs = {("fam%d:v%d" % (family, version - 1), "fam%d:v%d" % (family, version)) for family, version in SLOWER_IMAGE}
    same("slower images", {(row["old_image"], row["new_image"]) for row in rows["image_changes"]}, pairs)
    jobs = {("job%d" % j, "fam%d:v%d" % key) for key in SLOWER_IMAGE for j in range(JOBS) if j % FAMILIES == key[0]}
    jobs |= {("job%d" % j, "fam%d:v%d" % (j % FAMILIES, version)) for j, version in SLOWER_JOB}
    same("slower jobs", {(row["job"], row["new_image"]) for row in rows["regressions"]}, jobs)
    for row in rows["regressions"]:
        if not row["low"] < row["slower"] < row["high"]:
            bad.append("no interval: %s" % row)
    # By what they lose, which depends on how long they ran: all that lose far more than the rest.
    first = [(int(row["job"][3:]), row["cause"], row["file"], row["line"]) for row in rows["jobs"][:len(WASTE)]]
    same("jobs to look at first", sorted(first), sorted((j, *waste[:3]) for j, waste in WASTE.items()))
    rest = max(row["gain_low_h"] / row["gpu_h"] for row in rows["jobs"][len(WASTE):])
    if rest > 0.02:
        bad.append("another job is to gain %s of its hours" % rest)
    return bad


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    print(write(sys.argv[1], int(sys.argv[2]), *map(int, sys.argv[3:])))
