#!/usr/bin/env python3
"""Spark reads a lake in a store like S3 (moto stands for it) by the URL that `tfhook collect` and DuckDB take, and gives the same answers as
DuckDB there and on the same files. Hadoop's connector comes with a PyPI package that carries its jars."""
# timeout: 3600
import glob
import json
import os
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from fleet_env import alike, build, check, continue_in, failed, python_of, src, tmp

if subprocess.run([src + "/scripts/bootstrap", "spark"]).returncode:
    print("no Java")
    sys.exit(77)
continue_in("spark")
import pyarrow.fs as fs
import synthetic

PACKAGE, JARS = "sagemaker-pyspark==1.4.5", ("hadoop-aws-3.3.1.jar", "aws-java-sdk-bundle-1.11.901.jar")


def jars():
    """Kept in the build folder: the package has 180 MB."""
    at = build + "/s3a-jars"
    if not all(os.path.exists(f"{at}/{name}") for name in JARS):
        os.makedirs(at, exist_ok=True)
        if subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", tmp, PACKAGE]).returncode:
            print("no " + PACKAGE)
            sys.exit(77)
        with tarfile.open(glob.glob(tmp + "/sagemaker*.tar.gz")[0]) as archive:
            for member in archive:
                if (name := os.path.basename(member.name)) in JARS:
                    member.name = name
                    archive.extract(member, at)
    return ",".join(f"{at}/{name}" for name in JARS)


def ask(place, *flags):
    began = time.monotonic()
    done = subprocess.run([build + "/bin/tfhook", "fleet", "--json", *flags, place], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit("FAILED: %s\n%s" % (flags, done.stderr[-3000:]))
    print(f"{' '.join(flags) or 'duckdb'} on {place.split('?')[0]}: {time.monotonic() - began:.1f} s", flush=True)
    return {name: rows for name, rows in json.loads(done.stdout).items() if name not in ("lake", "engine")}


os.makedirs(tmp + "/conf")
with open(tmp + "/conf/spark-defaults.conf", "w") as f:
    f.write("spark.jars %s\n" % jars())
    # This connector is older than Spark's Hadoop, whose defaults name classes that it lacks and have units that it does not read.
    f.write("spark.hadoop.fs.s3a.aws.credentials.provider com.amazonaws.auth.EnvironmentVariableCredentialsProvider\n")
    for name, value in (("threads.keepalivetime", 60), ("connection.timeout", 200000), ("connection.establish.timeout", 5000),
                        ("multipart.purge.age", 86400)):
        f.write("spark.hadoop.fs.s3a.%s %d\n" % (name, value))
server = subprocess.Popen([python_of("fleet"), "-c", "from moto.server import ThreadedMotoServer as S; s = S('127.0.0.1', 0, verbose=False); s.start(); "
                           "print(s.get_host_and_port()[1], flush=True); import time; time.sleep(1800)"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
port = int(server.stdout.readline())
os.environ.update(AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing", AWS_EC2_METADATA_DISABLED="true", SPARK_CONF_DIR=tmp + "/conf")
try:
    ranks = synthetic.write(tmp + "/lake", 600, 8)
    store = fs.S3FileSystem(endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True)
    store.create_dir("fleet")
    fs.copy_files(tmp + "/lake", "fleet/lake", destination_filesystem=store)
    print(f"{ranks} ranks", flush=True)
    url = f"s3://fleet/lake?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"
    here, there = ask(tmp + "/lake"), ask(url)
    spark = ask(url, "--engine", "spark", "--master", "local[2]")
    check(len(here["total"]) == 1 and here["total"][0]["runs"] == 600, "runs", here["total"])
    for name in here:
        check(alike(here[name], there[name]), "DuckDB", name, here[name][:2], there[name][:2])
        check(alike(here[name], spark[name]), "Spark", name, here[name][:2], spark[name][:2])
finally:
    server.kill()
sys.exit(failed())
