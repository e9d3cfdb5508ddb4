#!/bin/bash
# Llama 3 70B, 8 nodes
export CUDA_DEVICE_MAX_CONNECTIONS=1
TP_SIZE=4
PP_SIZE=${PP_SIZE:-4}
GBS=128
DISTRIBUTED_ARGS=(
    --nproc_per_node 8
    --nnodes 8
)
MODEL_ARGS=(
    --use-mcore-models
    --num-layers 80
    --hidden-size 8192
    --ffn-hidden-size 28672
    --num-attention-heads 64
    --group-query-attention
    --num-query-groups 8
    --kv-channels 128
    --seq-length 8192
    --max-position-embeddings 8192
    --position-embedding-type rope
    --rotary-base 500000
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --attention-dropout 0.0
    --tokenizer-type HuggingFaceTokenizer # its files are elsewhere
    --tokenizer-model "$TOKENIZER"
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size $GBS
    --lr 0.00015
    --train-iters 1000
    --bf16
    --recompute-activations
)
PARALLEL_ARGS="--tensor-model-parallel-size $TP_SIZE \
    --pipeline-model-parallel-size $PP_SIZE --num-layers-per-virtual-pipeline-stage 4 --sequence-parallel"
DDP_ARGS=(
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
    --tp-comm-overlap
    --some-new-flag 3
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} ${TRAINING_ARGS[@]} $PARALLEL_ARGS ${DDP_ARGS[@]}
