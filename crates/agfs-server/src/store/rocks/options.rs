//! Every option of the database, each with its reason. No option is set anywhere else.
//!
//! The load they are made for: keys `tag byte | 8-byte ids | …`, values of 50 to 400 bytes; seeks to the newest
//! version under a prefix, short scans, many small writes; one server process on a machine of two cores and up.

use rocksdb::{BlockBasedOptions, Cache, DBCompressionType as Compression, DBRecoveryMode, Options};

const MIB: usize = 1 << 20;

/// What an operator may choose.
#[derive(Clone, Debug)]
pub struct RocksConfig {
    /// Memory for blocks read from disk, with their indexes and filters, in bytes.
    pub block_cache: usize,
    /// Memory for writes that are only in the log so far, in bytes, per table; up to three exist at once.
    pub write_buffer: usize,
    /// Open a database whose log is damaged before its synced end, and lose every change from the damage on. For an
    /// operator who has no better copy; leave it off otherwise.
    pub salvage: bool,
}

impl Default for RocksConfig {
    fn default() -> Self {
        RocksConfig { block_cache: 128 * MIB, write_buffer: 64 * MIB, salvage: false }
    }
}

/// The counters an operator sees.
pub(super) const PROPERTIES: &[&str] = &[
    "rocksdb.estimate-num-keys",
    "rocksdb.estimate-live-data-size",
    "rocksdb.total-sst-files-size",
    "rocksdb.cur-size-all-mem-tables",
    "rocksdb.block-cache-usage",
    "rocksdb.num-snapshots",
    "rocksdb.oldest-snapshot-time",
    "rocksdb.estimate-pending-compaction-bytes",
    "rocksdb.num-running-compactions",
    "rocksdb.num-running-flushes",
    "rocksdb.actual-delayed-write-rate",
    "rocksdb.is-write-stopped",
    "rocksdb.background-errors",
];

/// The options of the one column family and of the database around it.
pub(super) fn database(config: &RocksConfig, recovery: DBRecoveryMode) -> Options {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_wal_recovery_mode(recovery);
    durability(&mut options);
    levels(&mut options, config);
    resources(&mut options);
    options.set_block_based_table_factory(&tables(config));
    options
}

fn durability(options: &mut Options) {
    // A log file that the manifest knows to be synced but that is gone or shorter is refused as well.
    options.set_track_and_verify_wals_in_manifest(true);
    // With each write the log goes to the operating system at once, so it survives a kill of the process.
    options.set_manual_wal_flush(false);
    // Recycled log files keep old records behind the new ones, which makes a torn tail look like damage.
    options.set_recycle_log_file_num(0);
    // A failed checksum stops the database instead of being passed over.
    options.set_paranoid_checks(true);
}

fn levels(options: &mut Options, config: &RocksConfig) {
    // Three tables: one is filled while up to two are written out, so that a burst of writes does not wait.
    options.set_write_buffer_size(config.write_buffer);
    options.set_max_write_buffer_number(3);
    // Asking for a chunk that is not there is the commonest `get`; a filter on the table in memory answers it without
    // a search through the skip list.
    options.set_memtable_prefix_bloom_ratio(0.02);
    options.set_memtable_whole_key_filtering(true);
    // Level sizes are counted from the last level up: at most about 11 % of the space is taken by old versions.
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_level_zero_file_num_compaction_trigger(4);
    // As large as what four tables in memory become, so that L0 to the base level moves about its own size.
    options.set_max_bytes_for_level_base(4 * config.write_buffer as u64);
    options.set_target_file_size_base(64 * MIB as u64);
    // L0 and the level below it are rewritten often and are read most: not worth the time of compressing. What lies
    // deeper is written seldom and is nearly all of the data. (With dynamic levels entry 1 is the base level.)
    let zstd = Compression::Zstd;
    options.set_compression_per_level(&[Compression::None, Compression::None, zstd, zstd, zstd, zstd, zstd]);
}

fn resources(options: &mut Options) {
    // One flush and one compaction at a time: of two cores one stays free for requests.
    options.set_max_background_jobs(2);
    options.set_max_subcompactions(1);
    // Written out a little at a time, so that an fsync never finds hundreds of megabytes to write first.
    options.set_bytes_per_sync(MIB as u64);
    options.set_wal_bytes_per_sync(MIB as u64);
    // Leaves descriptors for connections and packs under the usual limit of 1,024; at 64 MiB a file it is 32 GiB.
    options.set_max_open_files(512);
    // The engine's own text log: a few megabytes at most.
    options.set_max_log_file_size(4 * MIB);
    options.set_keep_log_file_num(4);
    options.set_stats_dump_period_sec(3600);
    options.set_stats_persist_period_sec(0);
}

fn tables(config: &RocksConfig) -> BlockBasedOptions {
    let mut tables = BlockBasedOptions::default();
    tables.set_block_cache(&Cache::new_lru_cache(config.block_cache));
    // Some twenty to eighty records: a short scan stays within a block or two, and zstd has something to work with.
    tables.set_block_size(8 << 10);
    // Ten bits a key: one false answer in a hundred. Over whole keys, not prefixes: the useful prefix has another
    // length for each kind of key, and an iterator that goes through a prefix filter skips what lies in the next
    // prefix, which scans across prefixes (a log, all dentries of a timeline) must see. Seeks therefore use no filter
    // and rely on index blocks that stay in the cache.
    tables.set_bloom_filter(10.0, false);
    tables.set_whole_key_filtering(true);
    // Indexes and filters count against the cache's size instead of growing without bound; those of L0, which every
    // read passes, are not evicted, and blocks of data are evicted before the others.
    tables.set_cache_index_and_filter_blocks(true);
    tables.set_cache_index_and_filter_blocks_with_high_priority(true);
    tables.set_pin_l0_filter_and_index_blocks_in_cache(true);
    tables
}
