package policyfile

import (
	"errors"
	"fmt"
	"math"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v3"

	"github.com/turntable-streams/turntable/topics"
)

// maxDepth is the largest nesting depth of a value in a policy.
const maxDepth = 64

// valueOf returns a YAML value as JSON. A date without quotes is a text, as in JSON.
func valueOf(n *yaml.Node) (topics.Raw, error) {
	v, err := plain(n, 0)
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	raw, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("line %d: %w", n.Line, err)
	}
	return topics.Raw(raw), nil
}

func plain(n *yaml.Node, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch n.Kind {
	case yaml.MappingNode:
		object := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			name := n.Content[i].Value
			if _, repeated := object[name]; repeated {
				return nil, fmt.Errorf("member %q is repeated", name)
			}
			v, err := plain(n.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			object[name] = v
		}
		return object, nil
	case yaml.SequenceNode:
		array := make([]any, 0, len(n.Content))
		for _, element := range n.Content {
			v, err := plain(element, depth+1)
			if err != nil {
				return nil, err
			}
			array = append(array, v)
		}
		return array, nil
	case yaml.ScalarNode:
		return scalar(n)
	default:
		return nil, errors.New("an alias, want the value itself")
	}
}

func scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool", "!!int", "!!float":
		var v any
		if err := n.Decode(&v); err != nil {
			return nil, err
		}
		if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			return nil, errors.New("a number that is not finite")
		}
		return v, nil
	default:
		return n.Value, nil
	}
}
