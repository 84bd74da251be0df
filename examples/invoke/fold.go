package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/turntable-streams/turntable/processors/fold/folder"
	"github.com/turntable-streams/turntable/topics"
)

// runFold reads one turn per line and writes its batch as one line. It returns the exit code.
func runFold(in io.Reader, out io.Writer, args []string) int {
	flags := flag.NewFlagSet("fold", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), `usage: fold [-strict] < turns > batches

Each line of the input is a turn, {"id":..., "events":[...], "stop_reason":...}: its events in either encoding, and the
terminal result's stop reason if there is one. Each line of the output is its batch, {"id":..., "batch":{...},
"trimmed":[...], "assistant_text":"..."}, or {"id":..., "error":"..."}.

`)
		flags.PrintDefaults()
	}
	strict := flags.Bool("strict", false, "fail a turn with a malformed event; by default such events are left out")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 {
		flags.Usage()
		return 2
	}
	var opts []folder.Option
	if *strict {
		opts = append(opts, folder.Strict())
	}
	if err := foldLines(in, out, opts); err != nil {
		fmt.Fprintln(os.Stderr, "fold:", err)
		return 1
	}
	return 0
}

// foldLines reads lines of any length. Only a line feed ends a line, because JSON can contain all other separators.
func foldLines(in io.Reader, out io.Writer, opts []folder.Option) error {
	r, w := bufio.NewReaderSize(in, 64<<10), bufio.NewWriterSize(out, 64<<10)
	for {
		line, readErr := r.ReadBytes('\n')
		if line = bytes.Trim(line, " \t\r\n"); len(line) > 0 {
			// JSON can have carriage returns between its tokens, which some readers take for the end of a line.
			answer := bytes.ReplaceAll(foldLine(line, opts), []byte{'\r'}, []byte{' '})
			if _, err := w.Write(append(answer, '\n')); err != nil {
				return err
			}
		}
		// Flush unless another complete line is buffered: the client may wait for this batch before it writes the next line.
		if ahead, _ := r.Peek(r.Buffered()); bytes.IndexByte(ahead, '\n') < 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

func foldLine(line []byte, opts []folder.Option) []byte {
	var t turnLine
	err := t.read(line)
	var batch folder.Batch
	var text string
	if err == nil {
		batch, text, err = t.fold(opts)
	}
	answer := append([]byte(`{"id":`), t.id...)
	if err != nil {
		answer, _ = jsontext.AppendQuote(append(answer, `,"error":`...), err.Error())
		return append(answer, '}')
	}
	answer = batch.AppendJSON(append(answer, `,"batch":`...))
	answer = folder.AppendMessages(append(answer, `,"trimmed":`...), folder.Trim(batch.Messages))
	answer, _ = jsontext.AppendQuote(append(answer, `,"assistant_text":`...), text)
	return append(answer, '}')
}

// turnLine is a line of the input. Its values alias the line. If the line is invalid after its id, the id is set.
type turnLine struct{ id, events, stopReason topics.Raw }

func (t *turnLine) read(line []byte) error {
	err := t.decode(line)
	switch {
	case !utf8.Valid(line):
		if !utf8.Valid(t.id) {
			t.id = topics.Raw("null")
		}
		return errLine
	case err == errLine && (bytes.Contains(line, []byte("NaN")) || bytes.Contains(line, []byte("Infinity"))):
		// Decode the id for the error.
		if t.decode(replaceConstants(line)) == nil {
			return errNumber
		}
	}
	return err
}

// constants matches the numbers that Python writes but JSON does not have, and strings, which are not changed.
var constants = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|NaN|-?Infinity`)

func replaceConstants(line []byte) []byte {
	return constants.ReplaceAllFunc(line, func(token []byte) []byte {
		if token[0] == '"' {
			return token
		}
		return []byte("null")
	})
}

func (t *turnLine) decode(line []byte) error {
	*t = turnLine{id: topics.Raw("null")}
	d := jsontext.NewDecoder(bytes.NewBuffer(line), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != '{' {
		return errLine
	}
	if _, err := d.ReadToken(); err != nil {
		return errLine
	}
	for d.PeekKind() == '"' {
		token, err := d.ReadToken()
		if err != nil {
			return errLine
		}
		name := token.String()
		value, err := d.ReadValue()
		if err != nil {
			return errLine
		}
		end := d.InputOffset()
		aliased := topics.Raw(line[end-int64(len(value)) : end])
		switch name {
		case "id":
			t.id = aliased
		case "events":
			t.events = aliased
		case "stop_reason":
			t.stopReason = aliased
		}
	}
	if _, err := d.ReadToken(); err != nil || len(bytes.TrimSpace(line[d.InputOffset():])) > 0 {
		return errLine
	}
	if t.events == nil {
		return errEvents
	}
	return nil
}

func (t *turnLine) fold(opts []folder.Option) (folder.Batch, string, error) {
	f := folder.NewFolder(opts...)
	if err := f.AddJSON(t.events); err != nil {
		return folder.Batch{}, "", err
	}
	batch, err := f.Batch(folder.End{StopReason: t.stopReason})
	if err != nil {
		return folder.Batch{}, "", err
	}
	text, err := f.AssistantText()
	return batch, text, err
}

var (
	errNumber = errors.New("the line has NaN or an infinity, which JSON does not have")
	errLine   = errors.New("the line is not a JSON object in UTF-8")
	errEvents = errors.New("the turn has no events")
)
