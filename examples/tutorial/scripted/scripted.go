// Package scripted is the model of the tutorial. It plays the support of a lamp shop, so that the steps run without a key.
package scripted

import (
	"cmp"
	"context"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/topics"
)

// New returns the model. It has the results of the New of packages anthropic, openai and gemini, so that one line of a program
// replaces it. The error is always nil.
func New() (think.Model, error) { return model{}, nil }

// model knows the names of the tools that it was given.
type model struct{ tools []string }

// WithTools implements think.ToolUser.
func (m model) WithTools(tools ...think.Tool) (think.Model, error) {
	for _, t := range tools {
		m.tools = append(m.tools[:len(m.tools):len(m.tools)], t.Name)
	}
	return m, nil
}

// Think implements think.Model.
func (m model) Think(ctx context.Context, step think.Step) (think.Reply, error) {
	return think.StreamFunc(m.Stream).Think(ctx, step)
}

// pace is between two words.
const pace = 30 * time.Millisecond

// Stream implements think.Streamer: it calls the tool that the message needs, or says what the tools returned.
func (m model) Stream(ctx context.Context, step think.Step) iter.Seq2[think.Delta, error] {
	text, call := m.reply(step.Input())
	return func(yield func(think.Delta, error) bool) {
		for word := range strings.SplitAfterSeq(text, " ") {
			select {
			case <-time.After(pace):
			case <-ctx.Done():
				yield(think.Delta{}, context.Cause(ctx))
				return
			}
			if !yield(think.Delta{Text: word}, nil) {
				return
			}
		}
		if call != nil {
			yield(think.Delta{Call: call}, nil)
		}
	}
}

// calls are the words that need a tool, and its input with the number of the message in place of 0.
var calls = []struct{ word, tool, input string }{
	{"where", "order_status", `{"number":0}`},
	{"refund", "refund", `{"Order":0}`},
	{"pay", "pay", `{"Invoice":0}`},
	{"stock", "ask_warehouse", `{"task":"Count the lamps."}`},
	{"count", "count", `{"Item":"lamps"}`},
}

var number = regexp.MustCompile(`[1-9][0-9]{0,8}`)

func (m model) reply(input topics.Message) (text string, call *think.Call) {
	if input.Role != nil && *input.Role == "tool" {
		return outcome(input), nil
	}
	said := topics.Text(input.Content)
	for _, c := range calls {
		if !strings.Contains(strings.ToLower(said), c.word) {
			continue
		}
		if !slices.Contains(m.tools, c.tool) {
			return "I have no tool for that.", nil
		}
		input := strings.Replace(c.input, ":0", ":"+cmp.Or(number.FindString(said), "7"), 1)
		return "One moment, please. ", &think.Call{Name: c.tool, Input: topics.Raw(input)}
	}
	return "Hello, this is the lamp shop. What can I do for you?", nil
}

// outcome says what the tools returned.
func outcome(results topics.Message) string {
	var list []struct {
		Result struct {
			Text  string `json:"result"`
			Error string `json:"error"`
		} `json:"result"`
	}
	if err := json.Unmarshal(results.Content, &list); err != nil || len(list) == 0 {
		return "I could not read the result."
	}
	switch r := list[0].Result; {
	case r.Error != "":
		return "That did not work: " + r.Error
	case r.Text == "":
		return "Done."
	default:
		return r.Text
	}
}
