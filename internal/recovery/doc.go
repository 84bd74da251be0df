// Package recovery tells Goka where the recovery of a table ends, creates the topics that a group needs, and fences the
// transactions of dead members.
package recovery
