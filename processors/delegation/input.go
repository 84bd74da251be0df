package delegation

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// sendInput is the input of a call of agent_send_async.
type sendInput struct {
	target, message string
	timeout         time.Duration // 0 if it is absent
}

// recordReserve is the part of a record that is left for its other fields, key and headers.
const recordReserve = 40 << 10

// readSend reads the input of a call of agent_send_async. The error is for the model and does not quote the input.
func readSend(raw topics.Raw, c *Config) (in sendInput, err error) {
	members, err := readMembers(SendTool, raw)
	if err != nil {
		return in, err
	}
	if in.target, err = members.text("agent_id"); err != nil {
		return in, err
	}
	if in.target == "" {
		return in, members.invalid("agent_id is blank")
	}
	if in.message, err = members.text("message"); err != nil {
		return in, err
	}
	if in.message == "" {
		return in, members.invalid("message is blank")
	}
	if quotedSize(in.message) > c.RecordLimit-recordReserve {
		return in, members.invalid("message is too long")
	}
	switch v := members.values["timeout_seconds"]; v.Kind() {
	case 0, 'n':
	case '0':
		seconds, err := strconv.ParseFloat(string(v), 64)
		if err != nil || math.IsNaN(seconds) || seconds <= 0 {
			return in, members.invalid("timeout_seconds is not above 0")
		}
		in.timeout = time.Duration(min(max(seconds, 1), c.Deadline.Seconds()) * float64(time.Second))
	default:
		return in, members.invalid("timeout_seconds is no number")
	}
	return in, nil
}

// readCancel reads the input of a call of agent_cancel. The error is for the model and does not quote the input.
func readCancel(raw topics.Raw) (callbackID string, err error) {
	members, err := readMembers(CancelTool, raw)
	if err != nil {
		return "", err
	}
	for _, name := range []string{"callback_id", "task_id"} {
		if callbackID, err = members.text(name); err != nil || callbackID != "" {
			return callbackID, err
		}
	}
	return "", members.invalid("callback_id is blank")
}

// members are those of the input of a call.
type members struct {
	tool   string
	values map[string]jsontext.Value
}

func readMembers(tool string, raw topics.Raw) (members, error) {
	m := members{tool, map[string]jsontext.Value{}}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if raw == nil || json.UnmarshalDecode(dec, &m.values) != nil {
		return m, m.invalid("the input is no object")
	}
	return m, nil
}

// text returns a text without spaces at its ends, empty if it is absent.
func (m members) text(name string) (string, error) {
	switch v := m.values[name]; v.Kind() {
	case 0, 'n':
		return "", nil
	case '"':
		text, _ := jsontext.AppendUnquote(nil, v) // a text that is not UTF-8 is changed to UTF-8
		return strings.TrimSpace(string(text)), nil
	default:
		return "", m.invalid(name + " is no text")
	}
}

func (m members) invalid(what string) error { return inputError{m.tool, what} }

// inputError says what is wrong with an input. It does not quote the input.
type inputError struct{ tool, what string }

func (e inputError) Error() string { return "Invalid input of " + e.tool + ": " + e.what + "." }
