/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every environment variable of the library, once. The table yields the struct, the parser,
 * gininfo's list and the manual page ginshmem_environment(7).
 *
 *   GI_ENV(field, NAME, kind, default, min, max, help)
 *
 * kind: SIZE (bytes; suffix K M G T, KiB ... by 1024, kB ... by 1000), COUNT, TIME (ns ... s, plain
 * numbers are seconds), BOOL (0/1/yes/no/on/off/true/false), WORD (one of "a|b|c"; min and max
 * unused, the alternatives stand before " -- " in help), TEXT. default is the text one would type.
 * The variable's name is GINSHMEM_<NAME>. Include with GI_ENV defined; no include guard.
 */
GI_ENV(log, LOG, WORD, "warn", 0, 0, "error|warn|info|debug|trace -- least important level printed")
GI_ENV(log_file, LOG_FILE, TEXT, "", 0, 0, "file for messages; %r is the rank, %p the process id")
GI_ENV(check, CHECK, BOOL, "0", 0, 1,
       "check every call: live heap blocks, red zones, agreement of collective arguments")
GI_ENV(heap_size, HEAP_SIZE, SIZE, "16M", 65536, INT64_MAX,
       "heap at first use, per rank; grows by chunks up to GINSHMEM_HEAP_MAX")
GI_ENV(heap_max, HEAP_MAX, SIZE, "64G", 65536, INT64_MAX,
       "limit of the heap per rank (address space, not memory)")
GI_ENV(heap_chunk, HEAP_CHUNK, SIZE, "64M", 65536, INT64_MAX, "least growth of the heap")
GI_ENV(cuda_heap_size, CUDA_HEAP_SIZE, SIZE, "32M", 65536, INT64_MAX,
       "GPU heap at first use, per rank; grows by GINSHMEM_HEAP_CHUNK up to GINSHMEM_CUDA_HEAP_MAX")
GI_ENV(cuda_heap_max, CUDA_HEAP_MAX, SIZE, "256G", 65536, INT64_MAX,
       "limit of the GPU heap per rank (address space, not memory)")
GI_ENV(cuda_fabric, CUDA_FABRIC, BOOL, "0", 0, 1,
       "show GPU heaps by fabric handles where all GPUs can, else by file descriptors")
GI_ENV(stream_copy, STREAM_COPY, SIZE, "0", 0, INT64_MAX,
       "puts and gets on CUDA streams of so many bytes or more use the copy engine, less a kernel")
GI_ENV(stream_fuse, STREAM_FUSE, SIZE, "128K", 0, INT64_MAX,
       "puts with a remote action on CUDA streams of less are one kernel, others a copy and one")
GI_ENV(hugepages, HUGEPAGES, WORD, "no", 0, 0,
       "no|try|yes -- back the heap by huge pages; yes fails where there are none")
GI_ENV(init_timeout, INIT_TIMEOUT, TIME, "120s", 1, INT64_MAX,
       "deadline of bring-up; the message names the missing ranks")
GI_ENV(coll_timeout, COLL_TIMEOUT, TIME, "120s", 1, INT64_MAX,
       "deadline of collective host calls: allocation, windows, device communicators, barrier")
GI_ENV(coll_algo, COLL_ALGO, WORD, "auto", 0, 0,
       "auto|flat|tree|chain|hosts -- the way of collectives that have it; auto takes the "
       "cheapest")
GI_ENV(coll_sync, COLL_SYNC, WORD, "auto", 0, 0, "auto|flat|tree|hosts -- the way of gin_sync")
GI_ENV(coll_broadcast, COLL_BROADCAST, WORD, "auto", 0, 0,
       "auto|flat|tree|hosts -- the way of gin_broadcast")
GI_ENV(coll_allgather, COLL_ALLGATHER, WORD, "auto", 0, 0,
       "auto|flat|hosts -- the way of gin_allgather")
GI_ENV(coll_gather, COLL_GATHER, WORD, "auto", 0, 0, "auto|flat|hosts -- the way of gin_gather")
GI_ENV(coll_alltoall, COLL_ALLTOALL, WORD, "auto", 0, 0,
       "auto|flat|hosts -- the way of gin_alltoall")
GI_ENV(coll_alltoallv, COLL_ALLTOALLV, WORD, "auto", 0, 0,
       "auto|flat|hosts -- the way of gin_alltoallv")
GI_ENV(coll_allreduce, COLL_ALLREDUCE, WORD, "auto", 0, 0,
       "auto|flat|tree|hosts -- the way of gin_allreduce")
GI_ENV(coll_reduce, COLL_REDUCE, WORD, "auto", 0, 0,
       "auto|flat|tree|hosts -- the way of gin_reduce")
GI_ENV(coll_reduce_scatter, COLL_REDUCE_SCATTER, WORD, "auto", 0, 0,
       "auto|flat|hosts -- the way of gin_reduce_scatter")
GI_ENV(coll_scan, COLL_SCAN, WORD, "auto", 0, 0,
       "auto|flat|chain|hosts -- the way of gin_scan and gin_scan_exclusive")
GI_ENV(coll_cost, COLL_COST, TEXT, "", 0, 0,
       "ns by which auto compares ways of collectives, such as far_wait=15000,far_each=5000; see "
       "gin_broadcast(3)")
GI_ENV(coll_order, COLL_ORDER, WORD, "any", 0, 0,
       "any|rank -- reductions combine in the order of ranks: the same bits for any placement")
GI_ENV(coll_scratch, COLL_SCRATCH, SIZE, "512K", 4096, INT64_MAX,
       "heap memory of collectives, per index: their messages are as long as it allows")
GI_ENV(wait_warn, WAIT_WARN, TIME, "30s", 1, INT64_MAX,
       "a wait for a signal that lasts longer prints a warning")
GI_ENV(spin, SPIN, COUNT, "0", 0, 1000000000,
       "polls before a waiting thread yields; 0 chooses by ranks and cores of the host")
GI_ENV(disable_lsa, DISABLE_LSA, BOOL, "0", 0, 1, "treat no other rank as load/store accessible")
GI_ENV(disable_net, DISABLE_NET, BOOL, "0", 0, 1,
       "open no network; ranks that are not load/store accessible are not reached")
GI_ENV(peer_timeout, PEER_TIMEOUT, TIME, "60s", 100000000, INT64_MAX,
       "a rank of another host that is silent or owes an answer so long is lost; all ranks alike")
GI_ENV(disable_cma, DISABLE_CMA, BOOL, "0", 0, 1,
       "do not use process_vm_readv/writev for windows over user memory")
GI_ENV(disable_multimem, DISABLE_MULTIMEM, BOOL, "0", 0, 1,
       "no NVLink multicast; NCCL_NVLS_ENABLE=0 and NVSHMEM_DISABLE_NVLS=1 say the same")
GI_ENV(host_id, HOST_ID, TEXT, "", 0, 0, "name of this host, in place of boot id and namespaces")
GI_ENV(boot, BOOT, WORD, "auto", 0, 0,
       "auto|pmix|pmi1|pmi2|tcp|self -- bootstrap; auto takes what the launcher offers")
GI_ENV(provider, PROVIDER, TEXT, "", 0, 0,
       "libfabric provider for ranks of other hosts, such as tcp, verbs-msg; else the best found")
GI_ENV(nic, NIC, TEXT, "", 0, 0,
       "network device, a libfabric domain such as eth0 or mlx5_0, which must be there; else the "
       "provider's best")
GI_ENV(nics, NICS, TEXT, "", 0, 0,
       "network devices, commas between them, ordered alike on all ranks; contexts take turns")
GI_ENV(rails, RAILS, COUNT, "0", 0, 8,
       "devices for each rank, nearest first, as many on all ranks; 0: a fair share of those that "
       "are as near, 4 at most")
GI_ENV(stripe, STRIPE, SIZE, "512K", 0, INT64_MAX,
       "puts of so many bytes go by all rails, not by their context's alone; 0: none do")
GI_ENV(gpu_net, GPU_NET, WORD, "auto", 0, 0,
       "auto|dmabuf|hmem|stage -- how GPU memory gets to the network: auto tries to register it by "
       "DMA-BUF, then by FI_HMEM, else copies through the host; others are taken or refused")
GI_ENV(disable_gdrcopy, DISABLE_GDRCOPY, BOOL, "0", 0, 1,
       "leave small copies of staged GPU memory to the GPU, though GDRCopy is installed")
GI_ENV(engine_threads, ENGINE_THREADS, COUNT, "1", 1, 64,
       "threads that drive the network; each serves its share of the contexts")
GI_ENV(strategy, STRATEGY, WORD, "s", 0, 0,
       "s|epoch -- over networks without order: strong signals wait at the source, or the target "
       "counts")
GI_ENV(rank, RANK, COUNT, "", 0, 2147483647, "rank of this process, with SIZE and ROOT")
GI_ENV(size, SIZE, COUNT, "", 1, 2147483647, "number of ranks, with RANK and ROOT")
GI_ENV(root, ROOT, TEXT, "", 0, 0, "address:port at which rank 0 listens, with RANK and SIZE")
GI_ENV(secret, SECRET, TEXT, "", 0, 0,
       "job secret, of which every rank and rank 0 show each other half")
GI_ENV(iface, IFACE, TEXT, "", 0, 0, "network interface for the bootstrap over TCP")
GI_ENV(test_abi, TEST_ABI, COUNT, "", 0, 4294967295u,
       "for tests: pretend to be a library with this ABI number in the first exchange")
GI_ENV(signal_dump, SIGNAL_DUMP, BOOL, "1", 0, 1,
       "SIGUSR1 prints who waits for what, unless the program handles it")
GI_ENV(test_net, TEST_NET, TEXT, "", 0, 0,
       "for tests: what to spoil the network with, such as class=C,hold=8,early=1,seed=7")
GI_ENV(test_libgdr, TEST_LIBGDR, TEXT, "", 0, 0, "for tests: library to open as GDRCopy's")
GI_ENV(test_libcuda, TEST_LIBCUDA, TEXT, "", 0, 0, "for tests: library to open as CUDA's driver")
