//! What can go wrong beside kills: a full disk, a restored backup, a topic that is not there or was made anew.
