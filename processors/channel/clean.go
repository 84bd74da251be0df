package channel

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/channel/adapter"
	"github.com/turntable-streams/turntable/topics"
)

const (
	maxNameBytes = 128
	maxEvent     = 4 << 10
)

// clean repairs the texts of an event. The error, if the event cannot be used, does not quote it.
func clean(in adapter.Inbound) (adapter.Inbound, error) {
	in.Text = strings.ToValidUTF8(in.Text, "\uFFFD")
	in.Origin.UserName = cleanName(in.Origin.UserName)
	o := in.Origin
	switch {
	case in.Event == "":
		return in, errors.New("no event ID")
	case len(in.Event) > maxEvent:
		return in, fmt.Errorf("its event ID is longer than %d bytes", maxEvent)
	case in.Decision != nil && in.Decision.GateID == "":
		return in, errors.New("a decision without the ID of its request")
	}
	// Repaired IDs could be those of another place.
	for _, id := range []string{o.Channel, o.Account, o.Recipient, o.Thread, o.MessageID, o.User} {
		if !utf8.ValidString(id) {
			return in, errors.New("an ID of its origin is not UTF-8")
		}
	}
	if err := o.Check(); err != nil {
		return in, err
	}
	if _, err := topics.DecodeOrigin(topics.EncodeOrigin(o)); err != nil { // also the adapter's part
		return in, err
	}
	return in, nil
}

// cleanName makes a name, which anyone can choose, safe to be put before a text: one line without brackets and without
// characters that are not shown.
func cleanName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case look(r) == "[", look(r) == "]", r == unicode.ReplacementChar, !unicode.IsPrint(r):
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(name, ""))
	name = strings.Join(strings.Fields(name), " ")
	return strings.TrimSpace(truncate.Text(withoutHand(name), maxNameBytes))
}

// framed returns the content of a message. In a group it says who wrote it.
func framed(o topics.Origin, text string) string {
	text = unframed(text)
	if !o.Group {
		return text
	}
	return "[From: " + cmp.Or(o.UserName, cleanName(o.User), "someone") + "] " + text
}
