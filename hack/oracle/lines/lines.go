// Package lines is what both oracles have in common: cases come as JSON on
// standard input, one a line, and so do the answers go.
package lines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"runtime"
	"time"
)

// What Helm may print of one case, and use: a template of a few bytes can make
// gigabytes, which nobody wants to compare.
const (
	mostOutput = 16 << 20
	mostMemory = 4 << 30
)

// File is a file of a chart. What is no UTF-8 comes as Data, in base64.
type File struct {
	Name string `json:"name"`
	Text string `json:"text,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// Bytes are the file's content, a leading byte order mark cut, as Helm does it
// while it reads a folder.
func (f File) Bytes() []byte {
	data := f.Data
	if data == nil {
		data = []byte(f.Text)
	}
	if len(data) >= 3 && string(data[:3]) == "\xef\xbb\xbf" {
		data = data[3:]
	}
	return data
}

// Case is one chart and what `helm template` would be told with it.
type Case struct {
	ID int `json:"id"`
	// Files in the order in which Helm walks a folder; or else the path of a
	// folder or an archive.
	Files []File `json:"files,omitempty"`
	Path  string `json:"path,omitempty"`

	// Values are texts of files for -f, the others lines for flags.
	Values      []string `json:"values,omitempty"`
	SetJSON     []string `json:"setJson,omitempty"`
	Set         []string `json:"set,omitempty"`
	SetString   []string `json:"setString,omitempty"`
	SetLiteral  []string `json:"setLiteral,omitempty"`
	Name        string   `json:"name"`
	Namespace   string   `json:"namespace"`
	IsUpgrade   bool     `json:"isUpgrade,omitempty"`
	KubeVersion string   `json:"kubeVersion,omitempty"`
	APIVersions []string `json:"apiVersions,omitempty"`
	IncludeCRDs bool     `json:"includeCrds,omitempty"`
}

// Answer is what came of a case. Bytes travel in base64: they need not be text.
type Answer struct {
	ID     int    `json:"id"`
	Stdout []byte `json:"stdout,omitempty"`
	Notes  []byte `json:"notes,omitempty"`
	// Error is what the command would print behind "Error: ".
	Error []byte `json:"error,omitempty"`
	// Crash tells what would have ended the command by a panic.
	Crash string `json:"crash,omitempty"`
}

// Render runs one case.
type Render func(*Case) (stdout, notes string, err error)

// Serve answers every line until the input ends.
func Serve(version string, render Render) error {
	if len(os.Args) > 1 && os.Args[1] == "--version" {
		fmt.Println(version)
		return nil
	}
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	// Files of values are written here, under names that errors may tell.
	dir, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chdir(dir); err != nil {
		return err
	}
	go watchMemory()
	return serve(os.Stdin, os.Stdout, render)
}

// watchMemory ends the process before it ends the machine; whoever asks takes
// that for a crash.
func watchMemory() {
	for range time.Tick(200 * time.Millisecond) {
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		if stats.HeapAlloc > mostMemory {
			os.Exit(4)
		}
	}
}

func serve(in io.Reader, out io.Writer, render Render) error {
	decoder := json.NewDecoder(bufio.NewReaderSize(in, 1<<20))
	encoder := json.NewEncoder(out)
	for {
		var c Case
		if err := decoder.Decode(&c); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := encoder.Encode(answer(&c, render)); err != nil {
			return err
		}
	}
}

func answer(c *Case, render Render) (a Answer) {
	a.ID = c.ID
	defer func() {
		if fault := recover(); fault != nil {
			a.Crash = fmt.Sprint(fault)
		}
	}()
	stdout, notes, err := render(c)
	if err != nil {
		a.Error = []byte(err.Error())
		return a
	}
	if len(stdout)+len(notes) > mostOutput {
		a.Crash = "printed more than 16 MiB"
		return a
	}
	a.Stdout, a.Notes = []byte(stdout), []byte(notes)
	return a
}

// WriteValues puts the texts of values into files and tells their names.
func (c *Case) WriteValues() ([]string, error) {
	names := make([]string, 0, len(c.Values))
	for i, text := range c.Values {
		name := fmt.Sprintf("values%d.yaml", i)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}
