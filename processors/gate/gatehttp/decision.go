package gatehttp

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/codec"
	"github.com/turntable-streams/turntable/internal/digests"
	"github.com/turntable-streams/turntable/topics"
)

var (
	errBody    = errors.New("body is not a JSON object without repeated members")
	errVerdict = errors.New("verdict is none of approve, deny and answer")
	errScope   = errors.New("scope is none of once, session and agent")
)

// maxBodyDepth is the limit of nesting in a body. It is below that of a record because the values are nested in records.
const maxBodyDepth = topics.MaxValueDepth - 4

// parseDecision reads the body of a decision. Unlike readers of records it accepts no unknown members: one with a typing
// error must not turn an edit into an approval of the original arguments. An error about the body as a whole, or about the
// type of a member, does not quote values.
func parseDecision(body []byte) (d topics.GateDecision, err error) {
	value := jsontext.Value(bytes.TrimSpace(body))
	if codec.Deeper(value, maxBodyDepth) || !value.IsValid() || value.Kind() != '{' {
		return d, errBody
	}
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	if _, err := dec.ReadToken(); err != nil {
		return d, errBody
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return d, errBody
		}
		name := token.String()
		member, err := dec.ReadValue()
		if err != nil {
			return d, errBody
		}
		if err := setMember(&d, name, topics.Raw(bytes.Clone(member))); err != nil {
			return d, err
		}
	}
	return d, nil
}

func setMember(d *topics.GateDecision, name string, value topics.Raw) error {
	switch name {
	case "edited_args", "answer":
		if value[0] == 'n' {
			return nil
		}
		if name == "answer" {
			d.Answer = value
		} else {
			d.EditedArgs = value
		}
		return nil
	}
	var to *string
	switch name {
	case "verdict":
		to = (*string)(&d.Verdict)
	case "option_id":
		to = &d.OptionID
	case "reason":
		to = &d.Reason
	case "scope":
		to = (*string)(&d.Scope)
	case "args_sha256":
		to = &d.ArgsSHA256
	default:
		return errors.New("body has an unknown member")
	}
	switch value[0] {
	case 'n':
	case '"':
		*to = *topics.TextOf(value)
	default:
		return fmt.Errorf("%s is not a text", name)
	}
	return nil
}

// checkKnown checks the members that have a fixed set of values. The other verdicts of records are not for people.
func checkKnown(d topics.GateDecision) error {
	switch d.Verdict {
	case topics.VerdictApprove, topics.VerdictDeny, topics.VerdictAnswer:
	default:
		return errVerdict
	}
	switch d.Scope {
	case "", topics.ScopeOnce, topics.ScopeSession, topics.ScopeAgent:
		return nil
	default:
		return errScope
	}
}

// identify returns the ID of a decision: the same for a repeat of the request in every process.
func (h *Handler) identify(d topics.GateDecision, key string) (string, error) {
	d.DecisionID = "none"
	raw, err := h.topics.GateDecisions.Codec().Marshal(d)
	if err != nil {
		return "", err
	}
	return derived("gate decision", h.topics.Agent, key, string(raw)), nil
}

// derived returns an ID that depends only on its arguments.
func derived(parts ...string) string {
	d := digests.Of("", parts...)
	return hex.EncodeToString(d[:])
}
