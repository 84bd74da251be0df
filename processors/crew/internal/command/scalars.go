package command

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

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
