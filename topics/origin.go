package topics

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// MaxOrigin is the largest encoded Origin in bytes, and MaxAdapterData the largest of its member Adapter.
const (
	MaxOrigin      = 16 << 10
	MaxAdapterData = 8 << 10
	maxOriginText  = 512
)

// Origin says where a message of a channel came from, which is where its answer goes to. It travels as a value: in the
// metadata of the message (MetaOrigin), the tool calls and delegations of its turn, and the route of its output. It contains
// no secrets and no addresses of platforms.
type Origin struct {
	// Channel is the type of the platform, such as "slack", and Account the configured name of the account on it.
	Channel string `json:"channel"`
	Account string `json:"account"`
	// Recipient is where answers are sent: the platform's ID of a room, a conversation or a person.
	Recipient string `json:"recipient"`
	// Thread is the platform's ID of the thread, empty outside of one.
	Thread string `json:"thread,omitzero"`
	// MessageID is the platform's ID of the message.
	MessageID string `json:"message_id,omitzero"`
	// User is the platform's ID of the person who wrote, and UserName the name to show. Anyone can choose any name.
	User     string `json:"user,omitzero"`
	UserName string `json:"user_name,omitzero"`
	// Group says that others read the answer too.
	Group bool `json:"group,omitzero"`
	// Proof says what proves that User wrote the message.
	Proof Proof `json:"proof,omitzero"`
	// Adapter is what the adapter of the channel needs to answer, an object of at most MaxAdapterData bytes, or nil.
	Adapter Raw `json:"adapter,omitzero" as:"object"`
}

// Proof says what proves who wrote a message, and so what the message may decide. A value that is none of these counts as ProofNone.
type Proof string

// The proofs.
const (
	// ProofPlatform: the platform, or the program that sent the message, has authenticated the person.
	ProofPlatform Proof = ""
	// ProofCode: a server vouches for the domain of the sender, as DMARC does. A decision also needs the code in the question.
	ProofCode Proof = "code"
	// ProofNone: anyone could have written the message, or the person may not decide. It decides nothing.
	ProofNone Proof = "none"
)

// The members of a message's metadata that processors/delegation writes. Doors must not take them over from their callers:
// whoever writes MetaOrigin decides where the answer goes to.
const (
	// MetaOrigin has the Origin of the message.
	MetaOrigin = "turntable_origin"
	// MetaPrompt has a text that the model gets as a further section of its system prompt, in this turn only.
	MetaPrompt = "turntable_ephemeral_prompt"
	// MetaTask marks the message as a task that another agent delegated: a DelegationTask.
	MetaTask = "turntable_delegation"
	// MetaResult marks the message as the result of a delegation: a DelegationNote. It is data and never a command.
	MetaResult = "turntable_delegation_result"
)

var originWire = tagged[Origin](nil)

// DecodeOrigin reads an origin. The error, if it is too large or names no channel, account or recipient, does not quote it.
func DecodeOrigin(raw Raw) (Origin, error) {
	if len(raw) > MaxOrigin {
		return Origin{}, fmt.Errorf("%w: origin: %d bytes, the limit is %d", ErrType, len(raw), MaxOrigin)
	}
	o, err := originWire.part(raw)
	if err == nil {
		err = o.Check()
	}
	if err != nil {
		return Origin{}, err
	}
	return o, nil
}

// EncodeOrigin writes an origin. A valid one, see Check, can be decoded again.
func EncodeOrigin(o Origin) Raw { return encode(o, originWire.write) }

// Check reports what is missing from an origin or too long in it. The error does not quote it.
func (o Origin) Check() error {
	for _, field := range []struct {
		name, text string
		required   bool
	}{
		{"channel", o.Channel, true},
		{"account", o.Account, true},
		{"recipient", o.Recipient, true},
		{"thread", o.Thread, false},
		{"message_id", o.MessageID, false},
		{"user", o.User, false},
		{"user_name", o.UserName, false},
		{"proof", string(o.Proof), false},
	} {
		switch {
		case field.required && field.text == "":
			return missing("origin." + field.name)
		case len(field.text) > maxOriginText:
			return wrongType("origin."+field.name, fmt.Sprintf("longer than %d bytes", maxOriginText))
		}
	}
	if len(o.Adapter) > MaxAdapterData {
		return wrongType("origin.adapter", fmt.Sprintf("longer than %d bytes", MaxAdapterData))
	}
	if n := len(EncodeOrigin(o)); n > MaxOrigin { // texts of control characters, which are six bytes each on the wire
		return wrongType("origin", fmt.Sprintf("%d bytes, the limit is %d", n, MaxOrigin))
	}
	return nil
}

// UserID is the user_id of messages of the origin. It differs for people on different platforms and accounts who have the same
// ID there. It is empty if the platform names no person.
func (o Origin) UserID() string {
	if o.User == "" {
		return ""
	}
	return o.Channel + "/" + o.Account + "/" + o.User
}

// Destination is where answers to the origin go, for deliveries.
func (o Origin) Destination() Destination {
	return Destination{Kind: KindChannel, Service: o.Channel + "/" + o.Account}
}

// SamePlace reports whether two origins are of one conversation: the same channel, account, recipient and thread.
func (o Origin) SamePlace(other Origin) bool {
	return o.Channel == other.Channel && o.Account == other.Account && o.Recipient == other.Recipient && o.Thread == other.Thread
}

// Session is the ID of the session in which an agent answers the conversation of the origin: the same for one agent, channel,
// account, recipient and thread, and different for any other.
func (o Origin) Session(agent string) string {
	return "channel-" + identity("session", agent, o.Channel, o.Account, o.Recipient, o.Thread)
}

// EventID identifies an event of the origin's platform, such as a message, by the platform's own ID of it. Records that it
// causes have IDs that begin with it, so a repeated event changes nothing.
func (o Origin) EventID(event string) string {
	return "channel-event-" + identity("event", o.Channel, o.Account, event)
}

// identity returns 32 hexadecimal digits that are the same for the same texts only.
func identity(parts ...string) string {
	h := sha256.New()
	var length [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		h.Write(length[:])
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// The members of a reply descriptor for which no callback service is called.
const (
	memberOrigin     = "origin"
	memberDelegation = "delegation"

	memberService = "callbackService" // the member of all other descriptors
)

// OriginRoute returns the reply descriptor of an output that goes to an origin. gate is the request for approval that the
// output asks about, nil for none.
func OriginRoute(origin, gate Raw) Raw {
	return encode(struct{}{}, func(w *writer, _ struct{}) {
		w.grow(len(origin) + len(gate))
		w.open()
		w.raw(memberOrigin, origin)
		w.someRaw("gate", gate)
		w.close()
	})
}

// DelegationRoute returns the reply descriptor of the output of a delegated task.
func DelegationRoute(task Raw) Raw {
	return encode(task, func(w *writer, task Raw) {
		w.grow(len(task))
		w.open()
		w.raw(memberDelegation, task)
		w.close()
	})
}

// OriginOf returns the origin of a reply descriptor, nil if it has none. The descriptor of a callback service has none: a
// caller of a door wrote it, who must not choose where else an answer goes to.
func OriginOf(descriptor Raw) Raw { return unlessService(descriptor, memberOrigin) }

// unlessService returns a member of a reply descriptor that has no member callbackService, else nil.
func unlessService(descriptor Raw, name string) Raw {
	if _, ok := Lookup(descriptor, memberService); ok {
		return nil
	}
	value, _ := Lookup(descriptor, name)
	return value
}

// GateAskOf returns the request for approval that a reply descriptor is about, nil if it has none.
func GateAskOf(descriptor Raw) Raw { return unlessService(descriptor, "gate") }

// DelegationOf returns the delegated task of a reply descriptor, nil if it has none. As for OriginOf, the descriptor of a
// callback service has none.
func DelegationOf(descriptor Raw) Raw { return unlessService(descriptor, memberDelegation) }
