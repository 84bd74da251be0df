// Package consume reads topics in a consumer group, handles records side by side and out of order, and commits what is
// done without a gap before it: a record that takes long holds up neither its partition nor the group.
package consume
