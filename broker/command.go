package broker

import (
	"bytes"
	"strconv"
	"strings"
)

// The limits of beanstalkd's protocol.
const (
	maxLine     = 224 // of a command, its CRLF included
	maxTubeName = 200
)

// operation is one command of the protocol.
type operation struct {
	name   string // as it begins; a blank at its end means that arguments follow
	stat   string // what stats counts it as; "" if it does not
	run    func(s *session, args string)
	strict bool // nothing may follow the name
}

// operations in the order in which beanstalkd tries them. The first name that prefixes the
// line wins, as in beanstalkd.
func operations() []operation {
	return []operation{
		{name: "put ", run: (*session).put},
		{name: "peek ", stat: "cmd-peek", run: (*session).peek},
		{name: "peek-ready", stat: "cmd-peek-ready", run: (*session).peekReady, strict: true},
		{name: "peek-delayed", stat: "cmd-peek-delayed", run: (*session).peekDelayed, strict: true},
		{name: "peek-buried", stat: "cmd-peek-buried", run: (*session).peekBuried, strict: true},
		{name: "reserve-with-timeout ", stat: "cmd-reserve-with-timeout", run: (*session).reserveWithTimeout},
		{name: "reserve-job ", run: (*session).reserveJob},
		{name: "reserve", stat: "cmd-reserve", run: (*session).reserve, strict: true},
		{name: "delete ", stat: "cmd-delete", run: (*session).delete},
		{name: "release ", stat: "cmd-release", run: (*session).release},
		{name: "bury ", stat: "cmd-bury", run: (*session).bury},
		{name: "kick ", stat: "cmd-kick", run: (*session).kick},
		{name: "kick-job ", run: (*session).kickJob},
		{name: "touch ", stat: "cmd-touch", run: (*session).touch},
		{name: "stats-job ", stat: "cmd-stats-job", run: (*session).statsJob},
		{name: "stats-tube ", stat: "cmd-stats-tube", run: (*session).statsTube},
		{name: "stats", stat: "cmd-stats", run: (*session).stats, strict: true},
		{name: "use ", stat: "cmd-use", run: (*session).use},
		{name: "watch ", stat: "cmd-watch", run: (*session).watch},
		{name: "ignore ", stat: "cmd-ignore", run: (*session).ignore},
		{name: "list-tubes-watched", stat: "cmd-list-tubes-watched", run: (*session).listTubesWatched, strict: true},
		{name: "list-tube-used", stat: "cmd-list-tube-used", run: (*session).listTubeUsed, strict: true},
		{name: "list-tubes", stat: "cmd-list-tubes", run: (*session).listTubes, strict: true},
		{name: "quit", run: (*session).quit},
		{name: "pause-tube", stat: "cmd-pause-tube", run: (*session).pauseTube},
	}
}

// commands is looked through for each line.
var commands = operations()

// parseLine finds the command of a line, without its CRLF. Its reply is the error to answer, "" if there is none.
func parseLine(line []byte) (op operation, args, reply string) {
	if bytes.IndexByte(line, 0) >= 0 {
		return operation{}, "", replyBadFormat
	}
	text := string(line)
	for _, op := range commands {
		args, ok := strings.CutPrefix(text, op.name)
		if !ok {
			continue
		}
		if op.strict && args != "" {
			return operation{}, "", replyBadFormat
		}
		return op, args, ""
	}
	return operation{}, "", replyUnknown
}

// number reads a decimal number of so many bits, after blanks, and returns what follows it.
func number(args string, bits int) (n uint64, rest string, ok bool) {
	args = strings.TrimLeft(args, " ")
	end := 0
	for end < len(args) && '0' <= args[end] && args[end] <= '9' {
		end++
	}
	n, err := strconv.ParseUint(args[:end], 10, bits)
	return n, args[end:], err == nil
}

// numbers reads so many numbers and nothing behind them.
func numbers(args string, bits ...int) (out []uint64, ok bool) {
	for _, size := range bits {
		n, rest, ok := number(args, size)
		if !ok {
			return nil, false
		}
		out = append(out, n)
		args = rest
	}
	return out, args == ""
}

// validTube reports whether a name is a tube's.
func validTube(name string) bool {
	if name == "" || len(name) > maxTubeName || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("-+/;.$_()", rune(c)) {
			return false
		}
	}
	return true
}
