package adapter

import (
	"context"
	"time"

	"github.com/turntable-streams/turntable/processors/channel/text"
	"github.com/turntable-streams/turntable/topics"
)

// Adapter sends to one account of a platform.
type Adapter interface {
	// Channel is the type of the platform, such as "slack": the Channel of origins.
	Channel() string
	// Traits describe what the platform can show. They do not change.
	Traits() Traits
	// Send sends one chunk and returns what the platform made of it. The error is a *Failure; any other error counts as one that
	// can be retried, and its text is discarded, because it may contain a secret. Send is called concurrently, but only once at
	// a time for the chunks of a message. It returns soon after ctx ends.
	Send(ctx context.Context, c Chunk) (Sent, error)
}

// Checker is an Adapter that can ask its platform about the account. It is optional: see channel.Checks.
type Checker interface {
	// Check returns nil if the platform accepts the credentials of the account. It changes nothing there and returns soon after ctx
	// ends. The error is a *Failure, with the HTTP status or another number of the platform if it answered. A failure with RetryAfter,
	// with the status 408, 425, 429 or 5xx, or without a status says nothing about the credentials, unless it is Final.
	Check(ctx context.Context) error
}

// Traits are what a platform can show.
type Traits struct {
	// Format is the format of texts unless the settings name another one.
	Format text.Format
	// Limit is the longest text of one message.
	Limit text.Limit
	// Threads says that answers can be sent to a thread.
	Threads bool
	// Buttons says that the adapter shows the buttons of an Ask.
	Buttons bool
	// Spoken says that the text is spoken: it is not split, and a text over the limit is refused.
	Spoken bool
	// QuietErrors says that no error texts are sent, because everyone can read them.
	QuietErrors bool
}

// Chunk is one message to a platform: a part of an answer, or all of it.
type Chunk struct {
	To   topics.Origin
	Text string
	// Format is the format of Text.
	Format text.Format
	// Key is the same for every attempt to send the chunk, and different for every other chunk. Adapters pass it to platforms
	// that deduplicate by it, shortened or hashed if the platform wants that.
	Key string
	// Index counts the chunks of the message from 0, and Count is their number.
	Index, Count int
	// Previous is what the chunks before it were sent as, oldest first.
	Previous []Sent
	// Ask is a request for approval, in the last chunk of the message that asks for it; nil for all others.
	Ask *Ask
	// SenderName is the name of the agent, for platforms that show one. It may be empty.
	SenderName string
}

// Ask is a request for approval that a person may decide on with buttons. Without buttons, the text says how to answer it.
type Ask struct {
	GateID string
	Tool   string
	// ExpiresMS is when the request is given up, in Unix milliseconds.
	ExpiresMS int64
}

// Sent is what a platform made of a chunk.
type Sent struct {
	// ID is the platform's ID of the message, empty if it has none.
	ID string `json:"id"`
}

// Failure is the error of a chunk that was not sent.
type Failure struct {
	// Reason says why in a few words, such as "channel_not_found" or "status 503". It must not quote the text, an address or a
	// secret. Error codes of the platform are fine if they are from a fixed list: Code makes any text one.
	Reason string
	// Status is the HTTP status, or that of another protocol, 0 if there was none.
	Status int
	// Final says that the platform refused the chunk, or cannot reach the recipient: it is not sent again.
	Final bool
	// RetryAfter is how long the platform wants to be left alone, 0 if it does not say.
	RetryAfter time.Duration
}

// Error implements error.
func (f *Failure) Error() string { return "channel: not sent: " + f.Reason }

// Code returns a text of a platform as part of a Reason: its first 64 letters, digits and characters of "._- ", and nothing else.
func Code(s string) string {
	b := make([]byte, 0, 64)
	for i := 0; i < len(s) && len(b) < 64; i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-', c == ' ':
			b = append(b, c)
		}
	}
	return string(b)
}

// Receiver takes what adapters receive.
type Receiver interface {
	// Receive returns nil when nothing more has to be done for the event: its records are acknowledged, or it was refused by a
	// policy. After an error the event was not handled, and the adapter lets the platform send it again, which is harmless. It
	// blocks for as long as the brokers do, within ctx. It is called concurrently; events of one conversation must be passed
	// one after the other to keep their order.
	Receive(ctx context.Context, in Inbound) error
}

// ReceiverFunc is a Receiver that is a function.
type ReceiverFunc func(ctx context.Context, in Inbound) error

// Receive implements Receiver.
func (f ReceiverFunc) Receive(ctx context.Context, in Inbound) error { return f(ctx, in) }

// Inbound is an event of a platform that a person caused. Messages that bots wrote, the account's own ones included, are not
// passed on.
type Inbound struct {
	// Event is the platform's ID of the event, by which repeats are recognised. It is required.
	Event string
	// Origin is where the event came from. In a group, Recipient is the room and User the person. Origin.Proof says what proves that it
	// is this person: an adapter must set it unless the platform has authenticated the person.
	Origin topics.Origin
	// Text is what the person wrote, without a mention of the account at its beginning.
	Text string
	// Foreign says that another one wrote the text, such as that of a message which the person forwarded: it has no commands.
	Foreign bool
	// Mentioned says that the person addressed the account, by a mention or by a reply to it.
	Mentioned bool
	// Guild is the workspace, server or team of the room, and Roles what the person is there. They are empty if the platform
	// has none.
	Guild string
	Roles []string
	// Decision is what the person decided with a button; nil for messages. Text is then empty.
	Decision *Decision
	// At is when the person wrote, zero if the platform does not say.
	At time.Time
}

// Decision is a pressed button of an Ask.
type Decision struct {
	GateID  string
	Approve bool
}
