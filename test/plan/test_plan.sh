#!/bin/sh
# quern plan: the table, JSON, exit codes.
set -u
. "${0%/*}/expect.sh"

expect 0 "139 devices, every row checked" devices
expect 0 '"name": "A100 SXM4 80GB"' devices --json
expect 0 "RTX 4090 " devices consumer ada
expect 2 "no device has 'zx81'" devices zx81
expect 0 "Commands of quern plan" --help
expect 0 "usage: quern plan devices" devices --help
expect 2 "plan devices has no option --batch" devices --batch 3
expect 0 "gpt2_xl" models
expect 0 "the fastest is" resnet50 --batch 32 --gpu all
expect 0 '"device": "RTX 4090", "count": 2' resnet18 --gpu "RTX 4090:2" --batch 8 --json
expect 0 "take RTX 4090" resnet18 --gpu "RTX 4090" --samples 1281167 --epochs 2 --deadline 7d
expect 2 "would do (RTX 4090" resnet18 --gpu "RTX 4090" --samples 1e9 --deadline 1m
expect 2 "nothing fits" gpt3_175b --gpu "RTX 4090" --task infer --precision fp16
expect 2 "did you mean 'resnet50'" resnet5
expect 2 "did you mean 'RTX 4090'" resnet50 --gpu "RTX 409O"
expect 2 "expected a number of devices" resnet50 --gpu "RTX 4090:0"
expect 2 "expected auto or a whole number" resnet50 --batch 0
expect 2 "such as 50000, 1.5e9 or 300k" resnet50 --samples 3Q
expect 2 "no precision 'fp17'" resnet50 --precision fp17
expect 2 "expected train or infer" resnet50 --task serve
expect 2 "--deadline" resnet50 --deadline soon --samples 10
expect 2 "needs the size of the job" resnet50 --deadline 3h
expect 2 "takes no tokens" resnet50 --tokens 100
expect 2 "takes no images" gpt2_xl --image 100
expect 2 "no software stack" resnet50 --stack pytroch

table=$dir/table
cat >"$table" <<END
id,model,task,gpu,num_gpus,precision,batch_per_gpu,seq_or_res,throughput,unit,framework,source,flag
a,resnet50,train,V100 SXM2 16GB,1,fp32,64,224,380,img/s,PyTorch,s,
b,resnet50,train,V100 SXM2 16GB,8,fp32,64,224,2900,img/s,PyTorch,s,
c,never_heard_of,train,V100 SXM2 16GB,1,fp32,64,224,380,img/s,PyTorch,s,
END
expect 0 "2 of 3 rows expressed, 66.7 %" --score "$table"
expect 0 '"not_expressed": "no builder' --score "$table" --json
"$quern" plan --score "$table" --json | tail -1 >"$out"
for key in median_error_pct mean_error_pct expressed_pct interval_coverage_pct; do
    grep -q "\"$key\": [0-9]" "$out" || { echo "no $key in the last line"; failed=1; }
done
expect 0 "pytorch.conv," --fit "$table"
expect 2 "expected gpu or model" --score "$table" --hold-out moon
expect 2 "one of them" --score "$table" --fit "$table"
expect 2 "no_such_file.csv" --score no_such_file.csv
expect 2 "say which model"
exit $failed
