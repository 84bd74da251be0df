package anthropic

import (
	"strconv"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/topics"
)

// messageParams translates messages for the API. Blocks that are in its format are passed on unchanged. The thinking blocks of
// a reply, which are its state, are where they were.
func messageParams(messages []provider.Message) []sdk.MessageParam {
	var all []sdk.MessageParam
	for _, m := range messages {
		p := sdk.MessageParam{Role: sdk.MessageParamRoleUser}
		if m.Assistant {
			p.Role = sdk.MessageParamRoleAssistant
		}
		var thinking []thought
		at := 0 // of the reply that the thinking belongs to
		for _, b := range m.Blocks {
			if b.Kind == provider.State {
				thinking, at = thoughtsOf(b.Raw), 0
				continue
			}
			for len(thinking) > 0 && thinking[0].at <= at {
				p.Content = append(p.Content, param.Override[sdk.ContentBlockParamUnion](jsontext.Value(thinking[0].block)))
				thinking = thinking[1:]
			}
			at++
			switch {
			case b.Raw != nil:
				p.Content = append(p.Content, param.Override[sdk.ContentBlockParamUnion](jsontext.Value(b.Raw)))
			case b.Kind == provider.Result:
				p.Content = append(p.Content, sdk.NewToolResultBlock(b.ID, b.Text, b.Failed))
			default:
				p.Content = append(p.Content, sdk.NewTextBlock(b.Text))
			}
		}
		all = append(all, p)
	}
	return all
}

// thought is a thinking block and the number of texts and calls before it.
type thought struct {
	at    int
	block topics.Raw
}

// thoughtsOf reads a state: pairs of a number and a block.
func thoughtsOf(state topics.Raw) []thought {
	var all []thought
	elements, _ := topics.Elements(state)
	for i := 0; i+1 < len(elements); i += 2 {
		if at, err := strconv.Atoi(string(elements[i])); err == nil && jsontext.Value(elements[i+1]).Kind() == '{' {
			all = append(all, thought{at, elements[i+1]})
		}
	}
	return all
}

// stateOf is the reverse of thoughtsOf; nil for none.
func stateOf(all []thought) topics.Raw {
	if len(all) == 0 {
		return nil
	}
	b := topics.Raw{'['}
	for _, t := range all {
		b = append(append(append(strconv.AppendInt(b, int64(t.at), 10), ','), t.block...), ',')
	}
	b[len(b)-1] = ']'
	return b
}
