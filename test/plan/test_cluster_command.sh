#!/bin/sh
# quern plan cluster, and tables of many devices: what is printed, and exit codes.
set -u
. "${0%/*}/expect.sh"
need_yaml
table=$dir/table

set_of="cluster gpt2_xl --gpu"
expect 0 "efficiency against devices" $set_of "A100 SXM4 80GB" --gpus 8..64
expect 0 "cost of the run against devices" $set_of "A100 SXM4 80GB" --gpus 8…64 --tokens 10G
expect 0 "cheapest by what it does" $set_of "A100 SXM4 80GB" --gpus 8,24,64 --batch 1536
expect 0 '"tensor_parallel": ' $set_of "A100 SXM4 80GB" --gpus 8 --json
expect 0 "devices,fits,data,tensor" $set_of "A100 SXM4 80GB" --gpus 8 --csv
expect 0 "DP512" cluster resnet50 --gpu "V100 SXM2 16GB" --gpus 512 --network 3.1
expect 0 "examples/s" cluster recipes/breast-cancer.yaml --gpu T4 --gpus 1..4
expect 2 "no.yaml" cluster no.yaml --gpu T4
expect 2 "nothing fits" cluster gpt3_175b --gpu "A100 SXM4 80GB" --gpus 8
expect 2 "it would on 64 of A100" cluster gpt3_175b --gpu "A100 SXM4 80GB" --gpus 8
expect 2 "in the host's memory" cluster gpt3_175b --gpu "A100 SXM4 80GB" --gpus 32
expect 2 "optimizer" cluster gpt3_175b --gpu "A100 SXM4 80GB" --gpus 8
expect 2 "no layout divides" $set_of "A100 SXM4 80GB" --gpus 7 --batch 5
expect 2 "did you mean" cluster gpt2_xxxl --gpu "A100 SXM4 80GB"
expect 2 "did you mean" $set_of "A100 SXM4 81GB"
expect 2 "say which device" cluster gpt2_xl
expect 2 "expected numbers" $set_of "A100 SXM4 80GB" --gpus many
expect 2 "downwards" $set_of "A100 SXM4 80GB" --gpus 64..8
expect 2 "behind a number" $set_of "A100 SXM4 80GB" --gpus 8x
expect 2 "--batch" $set_of "A100 SXM4 80GB" --batch 1.5
expect 2 "takes images" cluster resnet50 --gpu T4 --sequence 5
expect 2 "no precision" $set_of "T4" --precision fp99
expect 0 "within the limits: 16 devices" $set_of "A100 SXM4 80GB" --gpus 8..64 --tokens 20G --deadline 30h
expect 2 "--budget" $set_of "A100 SXM4 80GB" --gpus 8..64 --tokens 20G --deadline 10h --budget 10
expect 2 "--deadline" $set_of "A100 SXM4 80GB" --gpus 8..16 --tokens 20G --deadline 1h --budget 10k
expect 2 "needs the size" $set_of "A100 SXM4 80GB" --gpus 8..16 --deadline 1h
expect 0 "Examples" cluster --help

echo "gpu,num_gpus,bytes,time_ns,busbw_gbs,source
A100 SXM4,8,1073741824,8193000,229.35,t
Abacus,8,1073741824,8193000,229.35,t" >"$table"
expect 0 "1 of 2 rows expressed" --score "$table"
expect 0 '"not_expressed": "the device' --score "$table" --json
expect 0 "switch.share," --fit "$table"
expect 2 "expected gpu, model or group" --score "$table" --hold-out moon
"$quern" plan --score "$table" --json | tail -1 >"$out"
for key in median_error_pct mean_error_pct expressed_pct interval_coverage_pct; do
    grep -q "\"$key\": [0-9]" "$out" || { echo "no $key in the last line"; failed=1; }
done
exit $failed
