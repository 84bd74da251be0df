package gemini

import (
	"encoding/base64"
	"mime"
	"net/url"
	"path"
	"regexp"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/genai"

	"github.com/turntable-streams/turntable/processors/turn/think"
	"github.com/turntable-streams/turntable/processors/turn/think/internal/provider"
	"github.com/turntable-streams/turntable/topics"
)

// noSignature is the value that the API accepts for calls whose thought signature is not known, such as those of another model.
// Models since Gemini 3 reject a call without one.
var noSignature = []byte("skip_thought_signature_validator")

var generation = regexp.MustCompile(`(?:^|/)gemini-([0-9]+)`)

// needsSignature reports whether a model rejects calls without a thought signature.
func needsSignature(model string) bool {
	match := generation.FindStringSubmatch(model)
	if match == nil {
		return false
	}
	n, err := strconv.Atoi(match[1])
	return err == nil && n >= 3
}

// contentsOf translates messages for the API.
func contentsOf(messages []provider.Message, signed bool) ([]*genai.Content, error) {
	var all []*genai.Content
	for _, m := range messages {
		c := &genai.Content{Role: genai.RoleUser}
		if m.Assistant {
			c.Role = genai.RoleModel
		}
		calls := 0
		var state topics.Raw // the signatures of a reply by the number of the call
		for _, b := range m.Blocks {
			if b.Kind == provider.State {
				state, calls = b.Raw, 0
				continue
			}
			part, err := partOf(b, m.Assistant)
			if err != nil {
				return nil, think.ErrConversation // the error would quote the block
			}
			if part == nil {
				continue
			}
			if part.FunctionCall != nil {
				known, _ := topics.Lookup(state, strconv.Itoa(calls))
				signature, err := base64.StdEncoding.DecodeString(topics.Text(known))
				switch {
				case err == nil && len(signature) > 0:
					part.ThoughtSignature = signature
				case signed && calls == 0: // of parallel calls only the first one has a signature
					part.ThoughtSignature = noSignature
				}
				calls++
			}
			c.Parts = append(c.Parts, part)
		}
		if len(c.Parts) > 0 {
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return nil, think.ErrConversation
	}
	return all, nil
}

// partOf translates a block; nil if it has no meaning for the API.
func partOf(b provider.Block, assistant bool) (*genai.Part, error) {
	switch b.Kind {
	case provider.Text:
		return &genai.Part{Text: b.Text}, nil
	case provider.Call:
		var args map[string]any
		if err := json.Unmarshal(b.Input, &args, jsontext.AllowDuplicateNames(true)); err != nil {
			return nil, err
		}
		return &genai.Part{FunctionCall: &genai.FunctionCall{ID: b.ID, Name: b.Name, Args: args}}, nil
	case provider.Result:
		return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: b.ID, Name: b.Name, Response: responseOf(b)}}, nil
	case provider.Image:
		return imageOf(b)
	}
	if assistant {
		return nil, nil
	}
	return &genai.Part{Text: b.Omitted()}, nil
}

// responseOf returns a result as the API names it: output or error.
func responseOf(b provider.Block) map[string]any {
	var value any
	if json.Unmarshal([]byte(b.Text), &value, jsontext.AllowDuplicateNames(true)) != nil {
		value = b.Text
	}
	if b.Failed {
		return map[string]any{"error": value}
	}
	return map[string]any{"output": value}
}

func imageOf(b provider.Block) (*genai.Part, error) {
	if b.URL == "" {
		data, err := base64.StdEncoding.DecodeString(b.Data)
		return &genai.Part{InlineData: &genai.Blob{Data: data, MIMEType: b.MediaType}}, err
	}
	kind := b.MediaType
	if u, err := url.Parse(b.URL); err == nil && kind == "" {
		kind = mime.TypeByExtension(path.Ext(u.Path))
	}
	if kind == "" {
		kind = "image/jpeg"
	}
	return &genai.Part{FileData: &genai.FileData{FileURI: b.URL, MIMEType: kind}}, nil
}
