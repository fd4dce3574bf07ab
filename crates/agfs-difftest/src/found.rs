//! What random scripts have found: each once differed on the file system under test, was shrunk, and stays the same since.
//!
//! One line a finding; to be done on everything that can do it ([`Script::is_of_requests`] says what needs no kernel).
//!
//! [`Script::is_of_requests`]: crate::Script::is_of_requests

/// Scripts by what they show.
pub const FOUND: &[(&str, &str)] = &[
    (
        "a_mapped_page_of_a_file_open_for_appending_goes_to_its_place",
        "open #2 d rw+creat+append 644; pwrite #2 0 13528 70; mapwrite #2 1273 2786 17 yes; pread #2 0 20000",
    ),
    (
        "a_mapped_page_of_a_file_open_for_appending_makes_it_no_longer",
        "open #0 c rw+creat 644; pwrite #0 0 1 1; open #6 c rw+append 644; mapwrite #6 0 1 1 no; close #6; close #0",
    ),
    (
        "a_mode_set_on_a_file_being_written_survives_the_loss_of_its_name",
        "open #1 d rw+creat 644; write #1 1 1; chmod #1 4755; unlink d",
    ),
    (
        "an_owner_set_on_a_file_being_written_survives_the_loss_of_its_name",
        "open #0 c rw+creat 644; truncate c 755; chown c 1000 -; unlink c",
    ),
    ("losing_its_last_name_changes_ctime", "open #0 c creat 644; unlink c"),
    ("being_replaced_changes_ctime", "open #0 c creat 644; open #1 d creat 644; rename d c plain"),
    ("losing_one_of_two_names_changes_ctime", "open #0 c creat 644; link c d no; unlink c"),
    ("a_listing_shows_what_was_made_since_the_opening", "mkdir b 755; open #6 b r 644; mkdir b/a 755; list #6"),
    ("truncation_by_open_of_an_empty_file_changes_mtime", "open #0 c creat 644; open #0 c trunc 0"),
    ("truncation_by_open_for_reading", "open #3 c rw+creat 644; pwrite #3 0 1 1; open #5 c trunc 644"),
    (
        "truncation_by_open_for_reading_after_allocation",
        "open #0 c rw+creat 644; fallocate #0 plain 0 1; open #2 c trunc 0",
    ),
    ("a_change_of_owner_to_nobody_else_changes_ctime", "mkdir a 755; chown a - -"),
    (
        "a_change_of_owner_to_nobody_else_takes_set_ids",
        "open #4 f creat 4755; chown f - -; open #5 e creat 2755; chown e - -",
    ),
    (
        "a_commit_does_not_take_ctime_back",
        "open #0 c rw+creat 644; pwrite #0 0 1 1; setxattr #0 user.a 0*37 set; sync #0 no",
    ),
    ("a_commit_at_close_does_not_take_ctime_back", "open #1 d rw+creat 644; pwrite #1 0 1 1; linkfd #1 a; close #1"),
    (
        "an_attribute_without_a_name_is_refused",
        "setxattr . user. 0*1 set; setxattr . user. 0*1 replace; getxattr . user.",
    ),
    ("an_attribute_without_a_name_is_not_removed", "mkdir a 755; removexattr a user."),
    ("allocation_that_keeps_the_size_changes_times", "open #1 d rw+creat 644; fallocate #1 keep 0 1"),
    (
        "truncation_to_the_same_size_changes_times",
        "open #1 d rw+creat 644; pwrite #1 0 9 1; truncate #1 9; truncate d 9",
    ),
    (
        "a_removed_directory_that_is_open",
        "mkdir a 755; open #1 a r 0; rmdir a; list #1; stat #1; mkdir @1:b 755; stat @1:.",
    ),
    (
        "an_unlinked_file_that_is_open",
        "open #1 c rw+creat 644; unlink c; setxattr #1 user.a 3*7 set; getxattr #1 user.a; reopen #2 #1 rw; pwrite #2 0 5 5; \
         pread #1 0 9; linkfd #1 d; chmod #1 600; truncate #2 3; stat #1",
    ),
    (
        "times_set_on_an_open_file_survive_the_loss_of_its_name",
        "open #2 e rw+creat 644; fallocate #2 plain 0 1; sync #2 no; utimens #2 omit -320867367.0; open #3 c creat 644; \
         rename c e plain; utimens #2 now omit",
    ),
    (
        "a_removed_directory_that_is_open_outlives_other_files",
        "mkdir b 755; open #6 c creat 644; mkdir b/e 755; open #7 b/e r 0; rmdir b/e; close #6; stat #7",
    ),
];
