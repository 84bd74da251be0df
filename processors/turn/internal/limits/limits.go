// Package limits has the bounds that the turn and its HTTP doors both apply, so that a door accepts nothing that the turn
// rejects.
package limits

const (
	// MaxID is the maximum length of an id, a name, a role or a timestamp, in bytes.
	MaxID = 1024
	// MaxDescriptor is the maximum length of a reply descriptor, in bytes.
	MaxDescriptor = 64 << 10
)
