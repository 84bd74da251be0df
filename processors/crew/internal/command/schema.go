package command

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// Target is the row that executes a command.
type Target int

const (
	// TargetCrew is the agent's crew.
	TargetCrew Target = iota
	// TargetRepository is the repository in which the agent works.
	TargetRepository
)

// Answered reports whether the row that executes a command answers it with a note each time. Messages and reports are answered only
// if they have no effect.
func Answered(name string) bool {
	switch name {
	case "AGENT_MESSAGE", "BROADCAST", "REACT", "ACTIVITY", "DECISION", "PROGRESS":
		return false
	}
	return true
}

// For returns the row that executes a command.
func For(name string) Target {
	switch name {
	case "LOCK_FILE", "UNLOCK_FILE", "COMMIT":
		return TargetRepository
	}
	return TargetCrew
}

// Decode returns the struct of a command, such as a CreateAgent for CREATE_AGENT. Unknown keys are dropped, and null is as no
// value. The error is the answer to the agent: it names the first field that is missing, too long or of a wrong type.
func Decode(name string, payload topics.Raw) (any, error) {
	spec, known := table[name]
	switch {
	case !known:
		return nil, fmt.Errorf("%s error: unknown command", name)
	case spec.refusal != "":
		return nil, errors.New(spec.refusal)
	}
	if len(payload) == 0 {
		payload = topics.Raw("{}")
	}
	if payload[0] != '{' {
		hint := ""
		if name == "DECLARE_TASKS" {
			hint = `, with the array as "tasks"`
		}
		return nil, fmt.Errorf("%s error: the payload must be an object%s", name, hint)
	}
	value, err := spec.decode(payload)
	if err != nil {
		return nil, fmt.Errorf("%s error: %w", name, err)
	}
	return value, nil
}

// checked is a payload with a rule that is not one of a single field, or that check changes.
type checked interface{ check() error }

// decodeAs decodes and checks a payload.
func decodeAs[T any](payload topics.Raw) (any, error) {
	var value T
	if err := json.Unmarshal(payload, &value); err != nil {
		return nil, typeError(err)
	}
	if err := checkFields(reflect.ValueOf(value), ""); err != nil {
		return nil, err
	}
	if c, ok := any(&value).(checked); ok {
		if err := c.check(); err != nil {
			return nil, err
		}
	}
	return value, nil
}

// typeError says which field has a wrong type.
func typeError(err error) error {
	var wrong *json.SemanticError
	if !errors.As(err, &wrong) || wrong.GoType == nil {
		return errors.New("invalid JSON payload")
	}
	if told := wrong.Err; told != nil && errors.Is(told, errValue) {
		return at(path(string(wrong.JSONPointer)), told)
	}
	return at(path(string(wrong.JSONPointer)), fmt.Errorf("must be %s", typeName(wrong.GoType)))
}

// path writes a JSON pointer as people write it: /tasks/0/role is tasks.0.role.
func path(pointer string) string {
	names := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, name := range names {
		names[i] = strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
	}
	return strings.Join(names, ".")
}

func at(path string, err error) error {
	if path == "" || err == nil {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	default:
		return "a number"
	}
}

// The limits of a text by the word in the tag crew of its field, in characters.
var limits = map[string]int{"text": 50_000, "name": 200, "id": 200, "task": 100, "path": 500, "emoji": 8}

// checkFields enforces the tags of a struct's fields in their order. The tag crew is a word of limits, and then "required" or,
// for arrays, the largest number of elements as "max=".
func checkFields(value reflect.Value, prefix string) error {
	for i := range value.NumField() {
		field := value.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		tag, found := field.Tag.Lookup("crew")
		if !found {
			continue
		}
		if err := checkField(value.Field(i), prefix+name, strings.Split(tag, ",")); err != nil {
			return err
		}
	}
	return nil
}

func checkField(value reflect.Value, path string, rules []string) error {
	limit, required, most := limits[rules[0]], false, 0
	for _, rule := range rules[1:] {
		if rule == "required" {
			required = true
		} else if _, err := fmt.Sscanf(rule, "max=%d", &most); err != nil {
			panic("command: unknown rule " + rule)
		}
	}
	if value.Kind() == reflect.String {
		return at(path, checkText(value.String(), limit, required))
	}
	if required && value.Len() == 0 {
		return at(path, errors.New("must not be empty"))
	}
	if value.Len() > most {
		return at(path, fmt.Errorf("at most %d elements", most))
	}
	for i := range value.Len() {
		element, place := value.Index(i), fmt.Sprintf("%s.%d", path, i)
		var err error
		if element.Kind() == reflect.Struct {
			err = checkFields(element, place+".")
		} else {
			err = at(place, checkText(element.String(), limit, true))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkText(text string, limit int, required bool) error {
	switch {
	case required && strings.TrimSpace(text) == "":
		return errors.New("must not be empty")
	case len(text) > limit && utf8.RuneCountInString(text) > limit:
		return fmt.Errorf("at most %d characters", limit)
	}
	return nil
}

const (
	minDelay = Delay(5 * time.Second)
	maxDelay = Delay(24 * time.Hour)
)

// errValue is the error of a value that Percent or Delay does not take.
var errValue = errors.New("must be")

// Percent is a number from 0 to 100, in JSON a number or a string with one.
type Percent float64

// UnmarshalJSON implements json.Unmarshaler.
func (p *Percent) UnmarshalJSON(raw []byte) error {
	text, err := scalar(raw)
	if err != nil {
		return err
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > 100 {
		return fmt.Errorf("%w a number from 0 to 100", errValue)
	}
	*p = Percent(n)
	return nil
}

// Delay is a time to wait, in JSON a number of seconds or a string such as 90, 30s, 5m or 2h.
type Delay time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *Delay) UnmarshalJSON(raw []byte) error {
	text, err := scalar(raw)
	if err != nil {
		return err
	}
	text = strings.ToLower(strings.TrimSpace(text))
	wait, err := time.ParseDuration(text)
	if seconds, plain := strconv.ParseFloat(text, 64); plain == nil {
		wait, err = time.Duration(math.Min(seconds, 1e9)*float64(time.Second)), nil
		if math.IsNaN(seconds) || seconds < 0 {
			err = errValue
		}
	}
	if err != nil {
		return fmt.Errorf("%w a number of seconds or a text such as 5m", errValue)
	}
	*d = Delay(wait)
	return nil
}

// scalar reads a number or a string.
func scalar(raw jsontext.Value) (string, error) {
	switch raw.Kind() {
	case '0':
		return string(raw), nil
	case '"':
		text, err := jsontext.AppendUnquote(nil, raw)
		return string(text), err
	}
	return "", fmt.Errorf("%w a number or a string", errValue)
}
