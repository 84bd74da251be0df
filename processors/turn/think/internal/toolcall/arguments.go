package toolcall

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// Arguments are the arguments of a call.
type Arguments struct {
	// Input is an object. It is empty if Problem is not.
	Input topics.Raw
	// Problem tells the model why the arguments cannot be used. It does not quote them.
	Problem string
	// Cut reports that they end too early.
	Cut bool
}

// maxEncoded is how many times an object can be encoded as a string.
const maxEncoded = 3

// maxInput is how deep arguments can be nested. Records that contain them have a greater limit.
const maxInput = 500

// Read reads the arguments of a call: an object, also one that is encoded as a string, or nothing (blank or null), which is an
// empty object.
func Read(text string) Arguments {
	for range maxEncoded + 1 {
		text = strings.TrimSpace(text)
		if text == "" || text == "null" {
			return Arguments{Input: topics.Raw("{}")}
		}
		v := jsontext.Value(WellFormed(topics.Raw(text)))
		if err := check(v); err != nil {
			return malformed(err)
		}
		switch v.Kind() {
		case '{':
			return Arguments{Input: topics.Raw(v)}
		case '"':
			text = topics.Text(topics.Raw(v))
		default:
			return invalid("they are " + kinds[v.Kind()])
		}
	}
	return invalid("they are a string")
}

var kinds = map[jsontext.Kind]string{'[': "an array", 't': "a boolean", 'f': "a boolean", '0': "a number"}

func invalid(why string) Arguments {
	return Arguments{
		Input: topics.Raw("{}"), Problem: "the tool was not run, because the arguments of the call are not a JSON object: " + why,
	}
}

func malformed(err error) Arguments {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		a := invalid("they end before the object does")
		a.Cut = true
		return a
	case errors.As(err, &syntax):
		return invalid(fmt.Sprintf("there is a syntax error after %d bytes", syntax.ByteOffset))
	default:
		return invalid("they are nested too deeply")
	}
}

var errDeep = errors.New("toolcall: nested too deeply")

// check reports what is wrong with a JSON value.
func check(v jsontext.Value) error {
	d := jsontext.NewDecoder(strings.NewReader(string(v)), jsontext.AllowDuplicateNames(true))
	for {
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		if depth := d.StackDepth(); depth > maxInput {
			return errDeep
		} else if depth == 0 {
			break
		}
	}
	end := d.InputOffset()
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return &jsontext.SyntacticError{ByteOffset: end}
	}
	return nil
}
