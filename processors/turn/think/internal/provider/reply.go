package provider

import (
	"strings"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/toolcall"
	"github.com/turntable-streams/turntable/topics"
)

// Reply is the reply of an attempt. An adapter adds to it what its provider sends, and ends it.
type Reply struct {
	// Names are those of the tools and of the conversation.
	Names   *Names
	session string
	ids     *toolcall.IDs
	yield   func(think.Delta) bool
	// Stopped reports that the caller wants no more.
	Stopped bool
	// Refused reports that the provider has refused a part.
	Refused bool
	// Blocks is the number of texts and calls so far, as the history will have them.
	Blocks, Calls int

	text   toolcall.Joiner
	said   bool     // a text that is not blank
	saying bool     // the open block is such a text
	good   int      // calls that can run
	called []string // IDs and names of the calls
	cut    bool     // the arguments of a call end too early
}

// Yield yields a delta.
func (r *Reply) Yield(d think.Delta) { r.Stopped = r.Stopped || !r.yield(d) }

// Say adds a piece of text: a JSON string. Other values are left out.
func (r *Reply) Say(piece topics.Raw) { r.say(r.text.Add(piece)) }

func (r *Reply) say(text string) {
	if text == "" {
		return
	}
	if strings.TrimSpace(text) != "" && !r.saying {
		r.said, r.saying = true, true
		r.Blocks++
	}
	r.Yield(think.Delta{Text: text})
}

// EndBlock ends a text.
func (r *Reply) EndBlock() {
	r.say(r.text.End())
	r.saying = false
	r.Yield(think.Delta{EndBlock: true})
}

// Call adds a call with its whole arguments.
func (r *Reply) Call(id, name, arguments string) {
	r.say(r.text.End())
	r.saying = false
	a := toolcall.Read(arguments)
	c := &think.Call{ID: r.ids.Next(id), Name: r.Names.Own(name), Input: a.Input, Invalid: a.Problem}
	if a.Problem == "" {
		r.good++
	}
	r.cut = r.cut || a.Cut
	r.Blocks++
	r.Calls++
	r.called = append(r.called, c.ID, c.Name)
	r.Yield(think.Delta{Call: c})
}

// ending is what a provider says of the end of a reply.
type ending int

const (
	complete ending = iota // also a reason that is not known
	calling
	limited     // at the token limit
	refused     // by the model or a filter
	interrupted // by a failure of the provider
	unusable
)

// endings are the reasons of all providers and of servers with compatible APIs.
var endings = map[string]ending{}

func init() {
	for kind, reasons := range map[ending]string{
		calling: "tool_calls tool_use",
		limited: "length max_tokens max_output_tokens model_length model_context_window_exceeded",
		refused: "refusal content_filter content_filtered safety recitation blocklist prohibited_content spii image_safety " +
			"image_prohibited_content sensitive guardrail_intervened",
		interrupted: "error network_error abort aborted insufficient_system_resource",
		// pause_turn is for tools that the API runs, which the requests do not enable. The others are calls that are lost.
		unusable: "pause_turn malformed_function_call unexpected_tool_call too_many_tool_calls malformed_response",
	} {
		for reason := range strings.FieldsSeq(reasons) {
			endings[reason] = kind
		}
	}
}

// End judges the reply when its stream has ended, and yields why the model stopped. A text that was cut off at the token limit
// is still a reply. One with calls is not, because a call may be incomplete or missing. A reply that has arrived as a whole
// counts, whatever its reason is called.
func (r *Reply) End(reason string) error {
	r.say(r.text.End())
	kind := endings[strings.ToLower(reason)]
	stop := "end_turn"
	switch {
	case r.Refused, kind == refused:
		return think.ErrRefused
	case kind == interrupted:
		return &Failure{Response{Status: 502, Type: "interrupted"}}
	case kind == limited && (r.Calls > 0 || !r.said):
		return think.ErrTruncated
	case kind == limited:
		stop = "max_tokens"
		if reason == "model_context_window_exceeded" {
			stop = reason
		}
	case kind == unusable, kind == calling && r.Calls == 0:
		return think.ErrResponse
	case r.cut && r.good == 0 && !r.said: // nothing but the beginning of a call
		return think.ErrResponse
	case r.Calls > 0: // also with another reason, as some servers send it
		stop = "tool_use"
	case reason == "stop_sequence":
		stop = reason
	}
	if !r.Stopped {
		r.Yield(think.Delta{Stop: stop})
	}
	return nil
}
