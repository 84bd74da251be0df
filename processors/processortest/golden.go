package processortest

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/topics"
)

// The flag has the package's name as its prefix, because many test packages have their own -update flag.
var update = flag.Bool("processortest.update", false, "write the golden files of processortest instead of comparing")

// Golden compares all outputs since New or the last call of Golden with a file, and marks them as read. The file has one
// line per record, in the order in which they were written: topic, key, ID, headers and value. The value is JSON if it is
// valid JSON, otherwise text or base64. If the test is run with -processortest.update, Golden writes the file and creates
// its directory instead.
func (d *Driver) Golden(path string) {
	d.tb.Helper()
	got, err := d.transcript()
	if err == nil && *update {
		err = write(path, got)
	} else if err == nil {
		err = compare(path, got)
	}
	if err != nil {
		d.fail(fmt.Errorf("processortest: golden file: %w", err))
	}
}

func write(path string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, raw, 0o644)
}

var errGolden = errors.New("outputs differ")

func compare(path string, got []byte) error {
	want, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w (-processortest.update writes it)", err)
	}
	if err != nil {
		return err
	}
	wantLines, gotLines := bytes.SplitAfter(want, []byte("\n")), bytes.SplitAfter(got, []byte("\n"))
	for i := range max(len(wantLines), len(gotLines)) {
		var w, g []byte
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if !bytes.Equal(w, g) {
			return fmt.Errorf("%w: %s line %d\nwant: %s\ngot:  %s", errGolden, path, i+1, w, g)
		}
	}
	return nil
}

// transcript returns the outputs since the last golden file as JSON lines, and marks them as read.
func (d *Driver) transcript() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var outputs []*record
	for _, l := range d.logs {
		outputs = append(outputs, l.outputs[l.golden:]...)
		l.golden, l.read = len(l.outputs), len(l.outputs)
	}
	slices.SortFunc(outputs, func(a, b *record) int { return cmp.Compare(a.seq, b.seq) })
	var b bytes.Buffer
	enc := jsontext.NewEncoder(&b, json.Deterministic(true), jsontext.AllowDuplicateNames(true))
	for _, r := range outputs {
		if err := json.MarshalEncode(enc, lineOf(r)); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// line is a record in a golden file. Exactly one of Value, Text, Base64 and Tombstone is set.
type line struct {
	Topic     string            `json:"topic"`
	Key       *string           `json:"key"`
	ID        string            `json:"id,omitzero"`
	Headers   map[string]string `json:"headers,omitzero"`
	Value     jsontext.Value    `json:"value,omitzero"`
	Text      *string           `json:"text,omitzero"`
	Base64    *string           `json:"base64,omitzero"`
	Tombstone bool              `json:"tombstone,omitzero"`
}

func lineOf(r *record) line {
	l := line{Topic: r.topic, ID: text([]byte(r.id()))}
	if !r.nullKey {
		key := text([]byte(r.key))
		l.Key = &key
	}
	for name, value := range r.headers {
		if name == topics.HeaderID {
			continue
		}
		if l.Headers == nil {
			l.Headers = make(map[string]string)
		}
		l.Headers[text([]byte(name))] = text(value)
	}
	value := jsontext.Value(r.value)
	switch {
	case r.value == nil:
		l.Tombstone = true
	case value.IsValid(jsontext.AllowDuplicateNames(true)):
		l.Value = value
	case utf8.Valid(r.value):
		s := string(r.value)
		l.Text = &s
	default:
		s := base64.StdEncoding.EncodeToString(r.value)
		l.Base64 = &s
	}
	return l
}

// text returns bytes in a form that a JSON string can contain.
func text(raw []byte) string {
	if utf8.Valid(raw) {
		return string(raw)
	}
	return "base64:" + base64.StdEncoding.EncodeToString(raw)
}
