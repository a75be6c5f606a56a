package relay_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The test binary plays the programs that are run: its first argument is "play", the
// second what to play.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "play" {
		program, ok := programs[os.Args[2]]
		if !ok {
			fmt.Fprintln(os.Stderr, "there is no program", os.Args[2])
			os.Exit(2)
		}
		program(os.Args[3:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

var programs = map[string]func(args []string){
	"exit": func(args []string) { os.Exit(number(args[0])) },
	"die":  func([]string) { must(process(os.Getpid()).Kill()); select {} },
	"cat":  func([]string) { _, err := io.Copy(os.Stdout, os.Stdin); must(err) },
	"env": func([]string) {
		for _, variable := range os.Environ() {
			fmt.Println(variable)
		}
	},
	"args": func(args []string) { fmt.Printf("%q\n", args) },
	"say":  func(args []string) { fmt.Println(args[0]); fmt.Fprintln(os.Stderr, args[1]) },
	"lines": func(args []string) {
		out := bufio.NewWriter(os.Stdout)
		for i := range number(args[0]) {
			_, _ = fmt.Fprintln(out, "line", i)
		}
		must(out.Flush())
	},
	"noise": func([]string) {
		fmt.Println(strings.Repeat("x", 100_000))
		_, _ = os.Stdout.Write([]byte("\xff\x00 binary\r\n\n\nlast without an end"))
	},
	"deaf": func([]string) { must(os.Stdin.Close()) },
	// wait notes its pid in the file, waits for TERM, notes that and exits.
	"wait": func(args []string) {
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		note(args[0], fmt.Sprint(os.Getpid()))
		<-term
		note(args[0], "got TERM")
		os.Exit(number(args[1]))
	},
	// stubborn notes its pid in the file and does not end at TERM.
	"stubborn": func(args []string) {
		signal.Ignore(syscall.SIGTERM)
		note(args[0], fmt.Sprint(os.Getpid()))
		<-time.After(time.Minute)
	},
	// leave starts a program of its own that holds its output open, and exits.
	"leave": func(args []string) {
		cmd := exec.Command(os.Args[0], "play", "stubborn", args[0])
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		must(cmd.Start())
		for range time.Tick(time.Millisecond) {
			if text, err := os.ReadFile(args[0]); err == nil && len(text) > 0 {
				break
			}
		}
		os.Exit(number(args[1]))
	},
	// family starts a program of its own and waits for it.
	"family": func(args []string) {
		cmd := exec.Command(os.Args[0], "play", "wait", args[0], "0")
		must(cmd.Start())
		must(cmd.Wait())
		os.Exit(1)
	},
}

func note(path, text string) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(err)
	_, err = fmt.Fprintln(file, text)
	must(err)
	must(file.Close())
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func process(pid int) *os.Process {
	p, err := os.FindProcess(pid)
	must(err)
	return p
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
