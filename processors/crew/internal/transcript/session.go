package transcript

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/internal/truncate"
	"github.com/turntable-streams/turntable/processors/fold/bridge"
	"github.com/turntable-streams/turntable/topics"
)

// entry is an entry of a plan.
type entry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

// plan replaces the plan. Entries that have no room are left out.
func (a applied) plan() []Change {
	var entries []topics.Raw
	for _, e := range bridge.Elements(a.get("entries")) {
		raw, err := json.Marshal(entry{
			Content:  truncate.Within(text(e, "content"), maxEntry),
			Priority: truncate.Within(text(e, "priority"), maxName),
			Status:   truncate.Within(text(e, "status"), maxName),
		})
		if err == nil {
			entries = append(entries, raw)
		}
	}
	list := first(entries, maxPlan)
	a.t.Plan = list
	if len(entries) == 0 {
		a.t.Plan = nil
	}
	return []Change{{Event: EventPlan, Fields: Plan{AgentID: a.agentID, Plan: list}}}
}

func (a applied) commands() []Change {
	a.t.Commands = first(bridge.Elements(a.get("availableCommands")), maxList)
	return a.raw()
}

func (a applied) mode() []Change {
	a.t.CurrentMode = truncate.Within(bridge.String(a.get("currentModeId")), maxName)
	return a.raw()
}

func (a applied) options() []Change {
	a.t.Options = first(bridge.Elements(a.get("configOptions")), maxList)
	return a.raw()
}

// info changes the title. A title that is null clears it; one that is absent does not.
func (a applied) info() []Change {
	if value, present := topics.Lookup(a.update, "title"); present {
		a.t.Title = truncate.Within(bridge.String(value), maxTitle)
	}
	return a.raw()
}

// SessionReady sets the modes and the options in the answer to session/new or session/load; nil for none.
func (t *Transcript) SessionReady(modes, options topics.Raw) {
	if modes != nil {
		t.Modes = first(bridge.Elements(bridge.Get(modes, "availableModes")), maxList)
		t.CurrentMode = truncate.Within(text(modes, "currentModeId"), maxName)
	}
	if options != nil {
		t.Options = first(bridge.Elements(options), maxList)
	}
}

// NewSession forgets what belongs to the earlier session of the agent. Its tool calls are kept for people, but an equal ID
// in the new session is another call. Close open calls first, see EndTurn.
func (t *Transcript) NewSession() {
	for _, c := range t.Calls {
		c.Earlier = true
	}
	t.Plan, t.Used, t.Size, t.Cost = nil, 0, 0, nil
	t.InputTokens, t.OutputTokens, t.CacheReadTokens, t.CacheWriteTokens = 0, 0, 0, 0
	t.Modes, t.Commands, t.Options, t.CurrentMode, t.Title = nil, nil, nil, "", ""
}

// A context whose fill level falls below 70 % of more than 10,000 tokens was compacted.
const (
	compactedFrom    = 10_000
	compactedPercent = 70
)

// usage sets the fill level of the context and the cost.
func (a applied) usage() []Change {
	t, before := a.t, a.t.Used
	used, known := tokens(a.get("used"))
	if known {
		t.Used = used
	}
	if size, ok := tokens(a.get("size")); ok {
		t.Size = size
	}
	if cost, present := topics.Lookup(a.update, "cost"); present {
		t.Cost = costOf(cost)
	}
	changes := []Change{t.usageOf(a.agentID)}
	if known && before > compactedFrom && 100*used < compactedPercent*before {
		changes = append(changes, Change{Event: EventCompacted, Fields: Compacted{
			AgentID: a.agentID, PreviousUsed: before, CurrentUsed: used,
			PercentDrop: int64(math.Round(100 * float64(before-used) / float64(before))),
		}})
	}
	return changes
}

// Spent sets the tokens of the session that the answer to a prompt states. They are totals of the session. nil changes nothing.
func (t *Transcript) Spent(agentID string, usage topics.Raw) []Change {
	if jsontext.Value(usage).Kind() != '{' {
		return nil
	}
	for _, member := range []struct {
		name  string
		field *int64
	}{
		{"inputTokens", &t.InputTokens},
		{"outputTokens", &t.OutputTokens},
		{"cachedReadTokens", &t.CacheReadTokens},
		{"cachedWriteTokens", &t.CacheWriteTokens},
	} {
		if n, ok := tokens(bridge.Get(usage, member.name)); ok {
			*member.field = n
		}
	}
	return []Change{t.usageOf(agentID)}
}

func (t *Transcript) usageOf(agentID string) Change {
	u := Usage{
		AgentID: agentID, InputTokens: t.InputTokens, OutputTokens: t.OutputTokens,
		CacheReadTokens: t.CacheReadTokens, CacheWriteTokens: t.CacheWriteTokens,
		Cost: t.Cost, ContextWindowUsed: t.Used, ContextWindowSize: t.Size,
	}
	if text(t.Cost, "currency") == "USD" {
		u.CostUSD = bridge.Get(t.Cost, "amount")
	}
	return Change{Event: EventUsage, Fields: u}
}

// costOf returns the cost if it is an amount in a currency, else nil.
func costOf(cost topics.Raw) []byte {
	amount, currency := bridge.Get(cost, "amount"), text(cost, "currency")
	if jsontext.Value(amount).Kind() != '0' || len(amount) > maxName || len(currency) > maxName {
		return nil
	}
	return bridge.Fields{}.Value("amount", amount).Text("currency", currency).Object()
}

// tokens reads a number of tokens.
func tokens(v topics.Raw) (n int64, ok bool) {
	if jsontext.Value(v).Kind() != '0' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f < 0 || f > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// text returns a member that is a text, empty for any other value.
func text(object topics.Raw, name string) string { return bridge.String(bridge.Get(object, name)) }

// blockOf reads a content block.
func blockOf(content topics.Raw) Block {
	m := topics.LookupAll(content, "type", "text", "data", "uri", "mimeType", "name")
	b := Block{
		Type: bridge.String(m[0]), Text: bridge.String(m[1]), Data: bridge.String(m[2]), URI: bridge.String(m[3]),
		MimeType: bridge.String(m[4]), Name: bridge.String(m[5]),
	}
	switch b.Type {
	case "image":
		return Block{Type: b.Type, Data: b.Data, URI: b.URI, MimeType: cmp.Or(b.MimeType, "image/png")}
	case "audio":
		return Block{Type: b.Type, Data: b.Data, URI: b.URI, MimeType: cmp.Or(b.MimeType, "audio/wav")}
	case "resource": // clients show its text; they have no use for a blob
		r := bridge.Get(content, "resource")
		return Block{Type: b.Type, Text: text(r, "text"), URI: text(r, "uri"), MimeType: text(r, "mimeType")}
	case "resource_link":
		return Block{Type: b.Type, URI: b.URI, MimeType: b.MimeType, Name: b.Name}
	}
	return b
}

// message returns a chunk of what the agent says.
func (a applied) message() []Change {
	block := blockOf(a.get("content"))
	switch block.Type {
	case "text":
		return a.chunk(EventText, block.Text)
	case "image", "audio", "resource", "resource_link":
		return []Change{{Event: EventContent, Fields: Content{AgentID: a.agentID, Content: block}}}
	}
	return a.chunk(EventText, "\n["+block.Type+" content]\n")
}

// thought returns a chunk of what the agent thinks. Only texts are shown.
func (a applied) thought() []Change {
	block := blockOf(a.get("content"))
	if block.Type != "text" {
		return nil
	}
	return a.chunk(EventThinking, block.Text)
}

func (a applied) chunk(event, said string) []Change {
	if said == "" {
		return nil
	}
	return []Change{{Event: event, Fields: Text{AgentID: a.agentID, Text: said, MessageID: bridge.String(a.get("messageId"))}}}
}

// clip marks a resource in a text.
const clip = "\U0001F4CE "

// Flatten returns the content of a tool call as text: an item a line, at most 4 KiB.
func Flatten(content topics.Raw) string {
	items := bridge.Elements(content)
	if items == nil && len(content) > 0 && content[0] != '[' {
		items = []topics.Raw{content}
	}
	var b strings.Builder
	for i, item := range items {
		if b.Len() > maxContent {
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(flattened(item))
	}
	return truncate.Within(b.String(), maxContent)
}

// flattened returns an item as text. One that has none is shown as the agent wrote it.
func flattened(item topics.Raw) string {
	if item[0] == '"' {
		return bridge.String(item)
	}
	block := item
	if inner := bridge.Get(item, "content"); inner != nil {
		block = inner
	}
	switch b := blockOf(block); b.Type {
	case "text":
		return b.Text
	case "resource":
		return strings.TrimSuffix(clip+b.URI+"\n"+b.Text, "\n")
	case "resource_link":
		return clip + b.URI
	case "image", "audio":
		return "[" + b.Type + " content]"
	}
	return string(item)
}
