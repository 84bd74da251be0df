package turn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/turntable-streams/turntable/topics"
)

// Messages of channels in the model test: each has an origin of its own, and its output, its calls and its gates must have
// that one, whatever crashes.

func TestTurnKeepsItsPromisesWithChannels(t *testing.T) {
	t.Parallel()
	tryHistories(t, false, 20, func(c *modelCase) { c.Channels = true })
}

func TestTurnKeepsItsPromisesWithChannelsAtTheRowLimit(t *testing.T) {
	t.Parallel()
	tryHistories(t, true, 8, func(c *modelCase) { c.Channels = true })
}

// meantChannel is what the metadata of a message says about channels.
type meantChannel struct {
	noRoute  bool   // it says where the output goes, or does so in vain
	own      string // the reply descriptor of the output
	origin   string
	depth    int64
	prompt   string
	result   bool
	invalid  bool
	metadata string // without what the model does not get
}

func (m meantChannel) from() string { return fromText(topics.Raw(m.origin), m.depth) }

func fromText(origin topics.Raw, depth int64) string {
	if len(origin) == 0 && depth == 0 {
		return ""
	}
	return fmt.Sprintf(" for %s at depth %d", string(origin), depth)
}

func promptText(prompt string) string {
	if prompt == "" {
		return ""
	}
	return " prompt " + prompt
}

func (o *oracle) waitingMessages() (n int) {
	for _, a := range o.unfinished[1:] {
		if !a.result {
			n++
		}
	}
	return n
}

// channel adds members to the metadata of a message.
func (g generator) channel(metadata string) (m meantChannel, all string) {
	m.noRoute = true
	var kept, stripped []string
	if inner := strings.TrimSuffix(strings.TrimPrefix(metadata, "{"), "}"); metadata != "null" {
		kept = append(kept, inner)
	}
	origin := fmt.Sprintf(`{"channel":"slack","account":"main","recipient":"C1","message_id":%q}`, g.name())
	add := func(name, value string) { stripped = append(stripped, fmt.Sprintf("%q:%s", name, value)) }
	kind := g.IntN(12)
	switch {
	case kind == 0:
		m.invalid = true
		add(topics.MetaOrigin, `{"channel":"slack"}`)
	case kind < 3:
		m.depth = int64(1 + g.IntN(5))
		value := topics.EncodeDelegationTask(topics.DelegationTask{Agent: "harbor", SessionID: "s9", CallbackID: g.name(), Depth: m.depth})
		m.own = string(topics.DelegationRoute(value))
		add(topics.MetaTask, string(value))
	default:
		m.origin, m.own = origin, string(topics.OriginRoute(topics.Raw(origin), nil))
		add(topics.MetaOrigin, origin)
	}
	if kind > 8 {
		m.result, m.depth = true, int64(g.IntN(4))
		kept = append(kept, fmt.Sprintf("%q:%s", topics.MetaResult, noteAt(m.depth)))
	}
	if g.chance(3) {
		m.prompt = "prompt " + g.name()
		add(topics.MetaPrompt, fmt.Sprintf("%q", m.prompt))
	}
	m.metadata = "{" + strings.Join(kept, ",") + "}"
	return m, "{" + strings.Join(append(stripped, kept...), ",") + "}"
}
