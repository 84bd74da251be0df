package email

import (
	"bytes"
	"cmp"
	"errors"
	"strings"

	"github.com/emersion/go-message"
	"github.com/emersion/go-message/mail"
	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

// verdict is what becomes of a mail. If dropped and refused are empty, in is passed on; at most one of them is not empty.
type verdict struct {
	in adapter.Inbound
	// dropped says why the mail is taken and not passed on, and refused why it is not taken. They do not quote the mail.
	dropped, refused string
	tooLarge         bool // the reason of refused
}

func drop(reason string) verdict   { return verdict{dropped: reason} }
func refuse(reason string) verdict { return verdict{refused: reason} }

// thread is what an answer needs to know of a thread, in Origin.Adapter.
type thread struct {
	Subject    string   `json:"subject"`
	References []string `json:"references"`
}

const (
	maxSubject = 500
	maxName    = 200
)

// judge decides about a mail. It has no clock and no I/O: the same mail has the same verdict.
func (a *acceptance) judge(raw []byte) verdict {
	if int64(len(raw)) > a.MaxMessage {
		return verdict{refused: "it is too large", tooLarge: true}
	}
	entity, err := message.ReadWithOptions(bytes.NewReader(raw), &message.ReadOptions{MaxHeaderBytes: maxHeader})
	if entity == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
		return refuse("its header cannot be read")
	}
	h := mail.Header{Header: entity.Header}
	from, name, ok := single(h, "From")
	if !ok {
		return refuse("it has no single usable From address")
	}
	if reason := a.automatic(h, from); reason != "" {
		return drop(reason)
	}
	if !a.mayWrite(from) {
		return refuse("the sender is not allowed")
	}
	if a.AuthServID != "" && !dmarcPassed(h.Values("Authentication-Results"), a.AuthServID, domainOf(from)) {
		return refuse("the sender is not authenticated")
	}
	b := &body{limit: a.MaxText}
	if err := b.read(entity, 0); err != nil {
		return unreadable(err)
	}
	written, err := b.text()
	if err != nil {
		return unreadable(err)
	}
	in := a.inbound(h, raw, from, name)
	in.Text = compose(h, written, b.attachments())
	if in.Text == "" {
		return drop("it is empty")
	}
	if err := in.Origin.Check(); err != nil {
		return refuse("its header is too long")
	}
	return verdict{in: in}
}

func unreadable(err error) verdict {
	switch {
	case errors.Is(err, errTooLong):
		return verdict{refused: errTooLong.Error(), tooLarge: true}
	case errors.Is(err, errStructure):
		return refuse(errStructure.Error())
	default: // the error may quote the mail
		return refuse("its parts cannot be read")
	}
}

// inbound returns the event of a mail without its text.
func (a *acceptance) inbound(h mail.Header, raw []byte, from, name string) adapter.Inbound {
	recipient := from
	if replyTo, _, ok := single(h, "Reply-To"); ok && a.mayBeAnswered(from, replyTo) && !a.isOwnAddress(replyTo) {
		recipient = replyTo
	}
	ids, references := messageIDs(h.Get("Message-Id")), referencesOf(h)
	var id, event string
	if len(ids) == 1 && h.FieldsByKey("Message-Id").Len() == 1 {
		id, event = ids[0], digests.Hex("event", strings.ToLower(from), ids[0])
	} else { // RFC 5322 asks for an ID but does not require it
		event = digests.Hex("unnamed", strings.ToLower(from), string(raw))
	}
	root := cmp.Or(id, event)
	if len(references) > 0 {
		root = references[0]
	}
	if !strings.EqualFold(recipient, from) {
		// Who asks for answers to another address must not enter that person's conversation.
		root += "#" + digests.Hex("sender", strings.ToLower(from))
	}
	subject, _ := h.Subject()
	origin := thread{Subject: oneLine(subject, maxSubject), References: chain(references, id)}
	encoded, _ := json.Marshal(origin) // two members of valid text cannot fail
	at, _ := h.Date()                  // a date that cannot be read is none
	proof := topics.ProofNone
	if a.AuthServID != "" { // judge has checked it
		proof = topics.ProofCode
	}
	return adapter.Inbound{
		Event: event,
		Origin: topics.Origin{
			Channel: Channel, Account: a.Account, Recipient: recipient, Thread: root, MessageID: id,
			User: strings.ToLower(from), UserName: name, Adapter: encoded,
			Proof: proof,
		},
		Mentioned: true, // a mail is addressed to the account
		At:        at,
	}
}

// referencesOf returns the IDs of the mails before this one, the oldest first.
func referencesOf(h mail.Header) []string {
	if ids := messageIDs(h.Get("References")); len(ids) > 0 {
		return ids
	}
	ids := messageIDs(h.Get("In-Reply-To"))
	return ids[:min(len(ids), 1)]
}

// single returns the only address of a header and the name with it.
func single(h mail.Header, key string) (address, name string, ok bool) {
	list, err := h.AddressList(key)
	if err != nil || len(list) != 1 || h.FieldsByKey(key).Len() != 1 {
		return "", "", false
	}
	address, ok = parseAddress(list[0].Address)
	return address, oneLine(list[0].Name, maxName), ok
}

// compose returns the text that is passed on.
func compose(h mail.Header, written, attachments string) string {
	reply := len(referencesOf(h)) > 0
	if reply {
		written = withoutQuote(written)
	}
	written = strings.TrimSpace(written)
	if subject, _ := h.Subject(); !reply && !strings.HasPrefix(written, "/") {
		if subject = oneLine(subject, maxSubject); subject != "" && written != "" {
			written = "Subject: " + subject + "\n\n" + written
		} else if subject != "" {
			written = subject
		}
	}
	if attachments != "" && written != "" {
		return written + "\n\n" + attachments
	}
	return written + attachments
}
