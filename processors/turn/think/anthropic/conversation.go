package anthropic

import (
	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/turn/think/internal/prompt"
)

// messageParams translates messages for the API. Blocks that are in its format are passed on unchanged.
func messageParams(messages []prompt.Message) []sdk.MessageParam {
	var all []sdk.MessageParam
	for _, m := range messages {
		p := sdk.MessageParam{Role: sdk.MessageParamRoleUser}
		if m.Assistant {
			p.Role = sdk.MessageParamRoleAssistant
		}
		for _, b := range m.Blocks {
			switch {
			case b.Raw != nil:
				p.Content = append(p.Content, param.Override[sdk.ContentBlockParamUnion](jsontext.Value(b.Raw)))
			case b.Kind == prompt.Result:
				p.Content = append(p.Content, sdk.NewToolResultBlock(b.ID, b.Text, b.Failed))
			default:
				p.Content = append(p.Content, sdk.NewTextBlock(b.Text))
			}
		}
		all = append(all, p)
	}
	return all
}
