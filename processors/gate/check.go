package gate

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

var (
	// ErrDigest is wrapped by the error of View.Check about a decision whose args_sha256 is not that of the gate: the person
	// saw other arguments.
	ErrDigest = errors.New("gate: the decision is about other arguments")
	// ErrDecision is wrapped by the other errors of View.Check: the gate does not accept such a decision.
	ErrDecision = errors.New("gate: invalid decision")
)

// Check reports whether the gate accepts a decision: nil, or an error that wraps ErrDigest or ErrDecision. The group
// applies the same rules, and dead-letters a decision that fails them; the gate stays open. Check does not look at the
// gate's outcome. Errors do not quote the decision.
func (v View) Check(d topics.GateDecision) error {
	if d.ArgsSHA256 != "" && d.ArgsSHA256 != v.ArgsSHA256 {
		return ErrDigest
	}
	for _, check := range []func(View, topics.GateDecision) string{checkVerdict, checkOption, checkScope, checkSize, checkValue} {
		if reason := check(v, d); reason != "" {
			return fmt.Errorf("%w: %s", ErrDecision, reason)
		}
	}
	return nil
}

// checkVerdict checks that the verdict is allowed and that the decision has the values that belong to it.
func checkVerdict(v View, d topics.GateDecision) string {
	edited, answered := d.EditedArgs != nil, d.Answer != nil
	switch {
	case edited && (d.Verdict != topics.VerdictApprove || !v.allows(topics.VerdictEdit)):
		return "its arguments cannot be edited"
	case answered && d.Verdict != topics.VerdictAnswer:
		return "only the verdict answer has an answer"
	case d.Verdict == topics.VerdictAnswer && !answered:
		return "the answer is missing"
	case edited:
		return ""
	}
	switch d.Verdict {
	case topics.VerdictApprove, topics.VerdictDeny, topics.VerdictAnswer:
		if v.allows(d.Verdict) {
			return ""
		}
	}
	return "its verdict is not allowed"
}

// option is one of the choices of a request, as ACP has them.
type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// The kinds of options that this package knows.
const (
	kindAllow       = "allow"
	kindReject      = "reject"
	kindAllowOnce   = "allow_once"
	kindAllowAlways = "allow_always"
)

// options returns the choices of a gate; none if they cannot be decoded.
func (v View) options() (list []option) {
	if v.Options == nil || json.Unmarshal(v.Options, &list) != nil {
		return nil
	}
	return list
}

func checkOption(v View, d topics.GateDecision) string {
	if d.OptionID == "" {
		return ""
	}
	for _, o := range v.options() {
		switch {
		case o.ID != d.OptionID:
			continue
		case strings.HasPrefix(o.Kind, kindReject) && d.Verdict != topics.VerdictDeny,
			strings.HasPrefix(o.Kind, kindAllow) && d.Verdict == topics.VerdictDeny:
			return "its option contradicts its verdict"
		case o.Kind == kindAllowAlways && v.Dangerous:
			return "a dangerous request is approved once only"
		}
		return ""
	}
	return "its option is unknown"
}

func checkScope(v View, d topics.GateDecision) string {
	switch {
	case d.Scope == "" || d.Scope == topics.ScopeOnce:
		return ""
	case d.Verdict != topics.VerdictApprove || d.EditedArgs != nil:
		return "only an approval without edits counts for later requests"
	case v.Dangerous:
		return "a dangerous request is approved once only"
	default:
		return ""
	}
}

// checkSize bounds what a decision adds to the row and to the outcome.
func checkSize(_ View, d topics.GateDecision) string {
	switch {
	case len(d.EditedArgs) > maxValue || len(d.Answer) > maxValue:
		return "its value is too large"
	case len(d.Reason) > maxText || len(d.DecisionID) > maxID || len(d.OptionID) > maxID || len(d.By) > maxID:
		return "one of its texts is too long"
	default:
		return ""
	}
}

// checkValue checks the edited arguments, or the answer, against the schema of the request.
func checkValue(v View, d topics.GateDecision) string {
	value := d.EditedArgs
	if d.Answer != nil {
		value = d.Answer
	}
	switch {
	case value == nil:
		return ""
	case !jsontext.Value(value).IsValid(): // also a repeated member, of which a tool may read either
		return "its value is not valid JSON"
	case d.EditedArgs != nil && isObject(v.Args) && !isObject(value):
		return "the edited arguments are not an object"
	}
	if v.ResponseSchema == nil {
		return ""
	}
	return validate(v.ResponseSchema, value)
}

func isObject(value topics.Raw) bool { return strings.HasPrefix(strings.TrimSpace(string(value)), "{") }
