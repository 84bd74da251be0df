// Package policyfile reads the policies of package approval from YAML.
//
//	default: ask                  # allow, ask or deny
//	read_only: [search, "look_*"] # tools that change nothing
//	ttl: 10m                      # how long a gate waits
//	shadow: false                 # record, but do not wait
//	rules:
//	  - tool: pay
//	    effect: ask
//	    edit: true
//	    message: May the agent pay?
//	    schema: {type: object, properties: {cents: {type: integer, maximum: 1000}}}
//	  - tool: pay
//	    args: {/cents: {at_least: 100000}}
//	    effect: deny
//	  - tool: "delete_*"
//	    effect: ask
//	    dangerous: true
//	    ttl: 1h
//
// The members are those of approval.Policy, approval.Rule and approval.Condition. Unknown members are errors.
package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/turntable-streams/turntable/processors/approval"
)

// MaxSize is the largest file that Read accepts, in bytes.
const MaxSize = 1 << 20

// Read reads a policy from a file. The error names the file and the line of each mistake, and wraps approval.ErrPolicy for
// mistakes in the content.
func Read(path string) (approval.Policy, error) {
	f, err := os.Open(path)
	if err != nil {
		return approval.Policy{}, fmt.Errorf("policyfile: %w", err)
	}
	defer func() { _ = f.Close() }()
	content, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return approval.Policy{}, fmt.Errorf("policyfile: %w", err)
	}
	p, err := Parse(content)
	if err != nil {
		return approval.Policy{}, fmt.Errorf("policyfile: %s: %w", path, err)
	}
	return p, nil
}

// Parse reads a policy from YAML. The error names the line of each mistake and wraps approval.ErrPolicy. An empty document
// is the zero policy, which asks for every call.
func Parse(content []byte) (approval.Policy, error) {
	if len(content) > MaxSize {
		return approval.Policy{}, fmt.Errorf("%w: more than %d bytes", approval.ErrPolicy, MaxSize)
	}
	dec := yaml.NewDecoder(bytes.NewReader(content))
	dec.KnownFields(true)
	var d document
	if err := dec.Decode(&d); err != nil && !errors.Is(err, io.EOF) {
		return approval.Policy{}, fmt.Errorf("%w: %w", approval.ErrPolicy, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return approval.Policy{}, fmt.Errorf("%w: more than one document", approval.ErrPolicy)
	}
	return d.policy(linesOfRules(content))
}

type document struct {
	Default  approval.Effect `yaml:"default"`
	ReadOnly []string        `yaml:"read_only"`
	TTL      time.Duration   `yaml:"ttl"`
	Shadow   bool            `yaml:"shadow"`
	Rules    []rule          `yaml:"rules"`
}

type rule struct {
	Tool      string               `yaml:"tool"`
	Args      map[string]condition `yaml:"args"`
	Effect    approval.Effect      `yaml:"effect"`
	Dangerous bool                 `yaml:"dangerous"`
	Edit      bool                 `yaml:"edit"`
	Schema    yaml.Node            `yaml:"schema"`
	Message   string               `yaml:"message"`
	TTL       time.Duration        `yaml:"ttl"`
}

type condition struct {
	Equals  yaml.Node `yaml:"equals"`
	Like    yaml.Node `yaml:"like"`
	AtMost  yaml.Node `yaml:"at_most"`
	AtLeast yaml.Node `yaml:"at_least"`
}

// policy converts a document and validates it. lines are the lines of its rules.
func (d document) policy(lines []int) (approval.Policy, error) {
	p := approval.Policy{Default: d.Default, ReadOnly: d.ReadOnly, TTL: d.TTL, Shadow: d.Shadow}
	var errs []error
	if err := p.Validate(); err != nil {
		errs = append(errs, err)
	}
	for i, r := range d.Rules {
		converted, err := r.rule()
		if err == nil {
			err = converted.Validate()
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w: line %d: rule %d: %w", approval.ErrPolicy, lineOf(lines, i), i+1, err))
		}
		p.Rules = append(p.Rules, converted)
	}
	if err := errors.Join(errs...); err != nil {
		return approval.Policy{}, err
	}
	return p, nil
}

func lineOf(lines []int, i int) int {
	if i < len(lines) {
		return lines[i]
	}
	return 0
}

func (r rule) rule() (approval.Rule, error) {
	out := approval.Rule{
		Tool: r.Tool, Effect: r.Effect, Dangerous: r.Dangerous, Edit: r.Edit, Message: r.Message, TTL: r.TTL,
	}
	var err error
	if !r.Schema.IsZero() {
		if out.Schema, err = valueOf(&r.Schema); err != nil {
			return out, fmt.Errorf("schema: %w", err)
		}
	}
	for pointer, c := range r.Args {
		if out.Args == nil {
			out.Args = make(map[string]approval.Condition, len(r.Args))
		}
		if out.Args[pointer], err = c.condition(); err != nil {
			return out, fmt.Errorf("args %s: %w", pointer, err)
		}
	}
	return out, nil
}

// condition converts a condition. A member without a value is an error: without it the condition would hold for any value.
func (c condition) condition() (approval.Condition, error) {
	out := approval.Condition{}
	var err error
	if !c.Equals.IsZero() {
		if out.Equals, err = valueOf(&c.Equals); err != nil {
			return out, fmt.Errorf("equals: %w", err)
		}
	}
	if !c.Like.IsZero() {
		if out.Like = c.Like.Value; c.Like.Kind != yaml.ScalarNode || c.Like.ShortTag() == "!!null" || out.Like == "" {
			return out, fmt.Errorf("line %d: like: want a pattern", c.Like.Line)
		}
	}
	if out.AtMost, err = numberOf(&c.AtMost); err != nil {
		return out, fmt.Errorf("at_most: %w", err)
	}
	if out.AtLeast, err = numberOf(&c.AtLeast); err != nil {
		return out, fmt.Errorf("at_least: %w", err)
	}
	return out, nil
}

// numberOf returns the value of a bound, nil if there is no bound.
func numberOf(n *yaml.Node) (*float64, error) {
	if n.IsZero() {
		return nil, nil
	}
	var f *float64
	if err := n.Decode(&f); err != nil || f == nil {
		return nil, fmt.Errorf("line %d: want a number", n.Line)
	}
	return f, nil
}

// linesOfRules returns the lines of the elements of rules. The decoder reports lines only for its own errors.
func linesOfRules(content []byte) (lines []int) {
	var root yaml.Node
	if err := yaml.Unmarshal(content, &root); err != nil || len(root.Content) == 0 {
		return nil
	}
	members := root.Content[0].Content
	for i := 0; i+1 < len(members); i += 2 {
		if members[i].Value == "rules" {
			for _, r := range members[i+1].Content {
				lines = append(lines, r.Line)
			}
		}
	}
	return lines
}
