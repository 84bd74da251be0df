package approval

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/turntable-streams/turntable/topics"
)

// ErrPolicy is wrapped by the errors of Policy.Validate.
var ErrPolicy = errors.New("approval: bad policy")

// Effect is what a policy says about a call.
type Effect string

// The effects, from the most lenient to the strictest.
const (
	Allow Effect = "allow"
	Ask   Effect = "ask"
	Deny  Effect = "deny"
)

// rank orders effects by strictness. Unknown effects are the strictest.
func (e Effect) rank() int {
	switch e {
	case Allow:
		return 0
	case Ask:
		return 1
	default:
		return 2
	}
}

// Stricter returns the stricter of two effects. An unknown effect counts as Deny.
func Stricter(a, b Effect) Effect {
	strictest := a
	if b.rank() > a.rank() {
		strictest = b
	}
	if strictest.rank() == Deny.rank() {
		return Deny
	}
	return strictest
}

// DefaultTTL is how long a gate waits for a decision unless the policy or the request says otherwise.
const DefaultTTL = 10 * time.Minute

// The bounds of a TTL.
const (
	MinTTL = time.Second
	MaxTTL = 30 * 24 * time.Hour
)

// Policy says which calls run, which wait for a person, and which do not run. The zero Policy asks for every call. A Policy
// must not be modified after it was passed to an option.
type Policy struct {
	// Default is the effect for calls that no rule matches and whose tool is not in ReadOnly; empty means Ask.
	Default Effect
	// ReadOnly are names or patterns of tools that change nothing. Calls that no rule matches are allowed for them.
	ReadOnly []string
	Rules    []Rule
	// TTL is how long a gate waits for a decision: 0 means DefaultTTL. Use about 10 minutes where no one watches, and up to
	// a day where the caller can wait.
	TTL time.Duration
	// Shadow makes requesters record what the policy says without waiting for it: every call runs.
	Shadow bool
}

// Rule is one rule of a policy.
type Rule struct {
	// Tool is the exact name of a tool, or a pattern in which * stands for any characters.
	Tool string
	// Args are conditions on the call's arguments, by JSON Pointer ("/amount"). All must hold for the rule to match.
	Args   map[string]Condition
	Effect Effect
	// Dangerous calls are never approved by a grant, and an approval counts for one call only.
	Dangerous bool
	// Edit permits the person to change the arguments.
	Edit bool
	// Schema is the JSON Schema of edited arguments, an object, or nil. It must not refer to other documents.
	Schema topics.Raw
	// Message is shown to the person who decides and, with Deny, to the model.
	Message string
	// TTL is how long the gate waits; 0 means that of the policy.
	TTL time.Duration
}

// Condition is a condition on one value. The set fields must all hold. A Condition without fields holds if the value exists.
type Condition struct {
	// Equals is the exact JSON value, compared by value: the order of members and blanks does not matter.
	Equals topics.Raw
	// Like is a pattern for a text, in which * stands for any characters.
	Like string
	// AtMost and AtLeast bound a number.
	AtMost, AtLeast *float64
}

// Validate checks a policy. The error wraps ErrPolicy and joins all problems, each with the number of its rule from 1.
func (p Policy) Validate() error {
	var errs []error
	invalid := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrPolicy}, args...)...))
	}
	if p.Default != "" && !p.Default.known() {
		invalid("default: %q is none of allow, ask and deny", p.Default)
	}
	for _, name := range p.ReadOnly {
		if strings.TrimSpace(name) == "" {
			invalid("read_only: a name is blank")
		}
	}
	if err := checkTTL(p.TTL); err != nil {
		invalid("ttl: %w", err)
	}
	for i, r := range p.Rules {
		if err := r.Validate(); err != nil {
			invalid("rule %d: %w", i+1, err)
		}
	}
	return errors.Join(errs...)
}

func (e Effect) known() bool { return e == Allow || e == Ask || e == Deny }

func checkTTL(ttl time.Duration) error {
	if ttl != 0 && (ttl < MinTTL || ttl > MaxTTL) {
		return fmt.Errorf("%v, want %v to %v", ttl, MinTTL, MaxTTL)
	}
	return nil
}

// Validate checks a rule. The error joins all problems.
func (r Rule) Validate() error {
	var errs []error
	if strings.TrimSpace(r.Tool) == "" {
		errs = append(errs, errors.New("tool: blank"))
	}
	if !r.Effect.known() {
		errs = append(errs, fmt.Errorf("effect: %q is none of allow, ask and deny", r.Effect))
	}
	if err := checkTTL(r.TTL); err != nil {
		errs = append(errs, fmt.Errorf("ttl: %w", err))
	}
	if r.Schema != nil && (len(r.Schema) == 0 || r.Schema[0] != '{' || !valid(r.Schema)) {
		errs = append(errs, errors.New("schema: not a JSON object"))
	}
	if r.Schema != nil && !r.Edit {
		errs = append(errs, errors.New("schema: set without edit"))
	}
	if r.Dangerous && r.Effect == Allow {
		errs = append(errs, errors.New("dangerous: set with effect allow"))
	}
	for pointer, c := range r.Args {
		if err := checkPointer(pointer); err != nil {
			errs = append(errs, err)
		} else if err := c.validate(); err != nil {
			errs = append(errs, fmt.Errorf("args %s: %w", pointer, err))
		}
	}
	return errors.Join(errs...)
}

func (c Condition) validate() error {
	switch {
	case c.Equals != nil && !valid(c.Equals):
		return errors.New("equals: not JSON")
	case isNaN(c.AtMost) || isNaN(c.AtLeast): // every number would be in bounds
		return errors.New("a bound is not a number")
	case c.AtMost != nil && c.AtLeast != nil && *c.AtMost < *c.AtLeast:
		return errors.New("at_most is less than at_least")
	case c.Like != "" && (c.AtMost != nil || c.AtLeast != nil):
		return errors.New("like and bounds cannot both hold")
	}
	return nil
}

func isNaN(bound *float64) bool { return bound != nil && math.IsNaN(*bound) }
