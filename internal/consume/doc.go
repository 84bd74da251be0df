// Package consume reads topics in a consumer group and handles the records of a partition concurrently. It commits the
// offset up to which all records are handled, without a gap. So a slow record blocks neither its partition nor the group.
package consume
