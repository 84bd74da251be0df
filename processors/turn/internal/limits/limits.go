// Package limits has what the turn and its HTTP doors agree on: the bounds that both apply, so that a door accepts nothing that the
// turn rejects, and the IDs that bind a message to its route.
package limits

const (
	// MaxID is the maximum length of an id, a name, a role or a timestamp, in bytes.
	MaxID = 1024
	// MaxDescriptor is the maximum length of a reply descriptor, in bytes.
	MaxDescriptor = 64 << 10
)

// The turntable.id of a message is a prefix and MessageID, that of its route in reply-to is the same prefix and RouteID. Without a
// request ID, that is what binds them.
const (
	MessageID = "/message"
	RouteID   = "/reply"
)
