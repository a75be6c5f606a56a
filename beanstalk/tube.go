package beanstalk

import (
	"errors"
	"fmt"
	"strings"
)

// maxTubeName is one byte less than the server allows: go-beanstalk refuses 200, and
// a name it refuses after the connection has been claimed blocks that connection for ever.
const maxTubeName = 199

// tubeCharacters are those of beanstalkd's protocol.txt.
const tubeCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-+/;.$_()"

// CheckTube reports why name is no tube name of beanstalkd, nil if it is one: 1 to
// 199 letters, digits and any of -+/;.$_() with no leading hyphen.
func CheckTube(name string) error {
	switch {
	case name == "":
		return errors.New("a tube name must not be empty")
	case len(name) > maxTubeName:
		return fmt.Errorf("tube name %.20q… has %d bytes, at most %d are allowed", name, len(name), maxTubeName)
	case name[0] == '-':
		return fmt.Errorf("tube name %q starts with a hyphen", name)
	}
	for i := range len(name) {
		if strings.IndexByte(tubeCharacters, name[i]) < 0 {
			return fmt.Errorf("tube name %q: byte %d is none of A–Z a–z 0–9 - + / ; . $ _ ( )", name, i+1)
		}
	}
	return nil
}
