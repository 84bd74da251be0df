package turn

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The oracle's rules of long histories: which exchanges the model is no longer sent.

type saidMessage struct {
	raw     json.RawMessage
	role    string
	calls   []string
	results []string
}

// read takes a history apart.
func readHistory(history string) (list []saidMessage) {
	var raws []json.RawMessage
	if err := json.Unmarshal([]byte(history), &raws); err != nil {
		panic(err)
	}
	for _, raw := range raws {
		var m struct {
			Role    *string
			Content json.RawMessage
		}
		_ = json.Unmarshal(raw, &m)
		said := saidMessage{raw: raw, role: "user"}
		if m.Role != nil {
			said.role = *m.Role
		}
		var blocks []map[string]any
		_ = json.Unmarshal(m.Content, &blocks)
		for _, b := range blocks {
			if id, ok := b["tool_use_id"].(string); ok && id != "" {
				said.results = append(said.results, id)
			} else if id, ok := b["id"].(string); ok {
				said.calls = append(said.calls, id)
			}
		}
		list = append(list, said)
	}
	return list
}

// mayBegin reports whether a history may begin with its message n: it is the user's, and no result after it has its call
// before it.
func mayBegin(list []saidMessage, n int) bool {
	if role := list[n].role; role == "assistant" || role == "tool" {
		return false
	}
	open := map[string]bool{}
	for _, m := range list[n:] {
		for _, id := range m.results {
			if !open[id] {
				return false
			}
		}
		for _, id := range m.calls {
			open[id] = true
		}
	}
	return true
}

func historyOf(list []saidMessage) string {
	raws := make([]string, len(list))
	for i, m := range list {
		raws[i] = string(m.raw)
	}
	return "[" + strings.Join(raws, ",") + "]"
}

// limited is a history after the rule of the limit: over it, the newest exchanges that have half of the limit, at least
// one.
func (o *oracle) limited(history string) string {
	list, limit := readHistory(history), o.rules.historyLimit()
	over := func(from, size, count int) bool {
		return len(historyOf(list[from:])) > size || count > 0 && len(list)-from > count
	}
	if !over(0, limit.Bytes, limit.Messages) {
		return history
	}
	newest := 0
	for n := range list {
		if n > 0 && mayBegin(list, n) {
			newest = n
			if !over(n, limit.Bytes/2, (limit.Messages+1)/2) {
				break
			}
		}
	}
	return historyOf(list[newest:])
}

// concedeHistory follows the transition where a small row or record has no room for all of a history: the model is sent
// the end of what it would be sent, beginning with an exchange.
func (o *oracle) concedeHistory(enriched, input string) {
	text, ok := strings.CutPrefix(o.got[enriched], asking(input, "", o.cost+promptText(o.unfinished[0].prompt)))
	if !o.Small || !ok || text == o.before {
		return
	}
	whole, sent := readHistory(o.before), readHistory(text)
	hidden := len(whole) - len(sent)
	if hidden <= 0 || historyOf(whole[hidden:]) != text || len(sent) > 0 && !mayBegin(whole, hidden) || len(sent) == 0 && o.said != nil {
		return // it is judged as wrong
	}
	o.before = text
	if o.said == nil {
		o.history = text
		return
	}
	o.said = &text
	stored := readHistory(o.history)
	same := func(a, b saidMessage) bool { return string(a.raw) == string(b.raw) }
	if len(stored) >= hidden && slices.EqualFunc(stored[:hidden], whole[:hidden], same) {
		o.history = historyOf(stored[hidden:])
	}
}

// judgeLimit says what is wrong with the length of a history at the beginning of a turn.
func (o *oracle) judgeLimit() {
	limit := o.rules.historyLimit()
	list := readHistory(o.before)
	if len(o.before) <= limit.Bytes && (limit.Messages == 0 || len(list) <= limit.Messages) {
		return
	}
	for n := range list {
		if n > 0 && mayBegin(list, n) {
			o.failf("the model is sent a history of %d messages and %d bytes, the limit is %s", len(list), len(o.before), fmt.Sprint(limit))
		}
	}
}
