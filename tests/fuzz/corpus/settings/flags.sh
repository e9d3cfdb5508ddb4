#!/bin/bash
# Llama 3 70B on 8 nodes of 8 GPUs.
TP_SIZE=4
PP_SIZE=${PP_SIZE:-4}
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
    --seq-length 8192
    --max-position-embeddings 8192
    --position-embedding-type rope
    --rotary-base 500000
    --swiglu
    --normalization RMSNorm
    --disable-bias-linear
    --untie-embeddings-and-output-weights
    --tokenizer-type HuggingFaceTokenizer
    --tokenizer-model "$TOKENIZER"
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 128
    --lr 1.5e-4
    --train-iters 1000
    --bf16
)
PARALLEL_ARGS="--tensor-model-parallel-size $TP_SIZE --sequence-parallel \
    --pipeline-model-parallel-size $PP_SIZE --num-layers-per-virtual-pipeline-stage 4"
DDP_ARGS=(
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} ${TRAINING_ARGS[@]} $PARALLEL_ARGS ${DDP_ARGS[@]}
