package sandbox

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// On Windows a command can run in a job, which ends with this program, and with
// a token that has lost its privileges. That keeps it from the rights of an
// administrator and from staying; it keeps it neither from the person's files nor
// from the network. So it is a mode to ask for, and Auto refuses.

type facts struct{}

// Main handles nothing here: there is no helper inside the sandbox.
func Main([]string) (code int, handled bool) { return 0, false }

func (s *Sandbox) choose(mode Mode) error {
	if mode == Job {
		return nil
	}
	why := "it does not exist on Windows"
	if mode == Auto {
		why = "Windows has nothing that this program can use to keep files and network from a process"
	}
	return &UnenforceableError{What: "mode " + quote(string(mode)), Why: why}
}

// begin starts c with a restricted token.
func (s *Sandbox) begin(p Policy, c Command, path string, pipes *pipes) (*child, func() []Denial, error) {
	token, err := restrictedToken()
	if err != nil {
		return nil, nil, &UnenforceableError{What: "a token without privileges", Why: err.Error()}
	}
	defer token.Close()
	ch, err := spawnAs(syscall.Token(token), path, c, pipes.theirs, p.Limits)
	return ch, nil, err
}

// restrictedToken is our own token without privileges and without the rights of
// the administrators' groups.
func restrictedToken() (windows.Token, error) {
	const withoutPrivileges, asOrdinaryUser = 0x1, 0x4 // DISABLE_MAX_PRIVILEGE, LUA_TOKEN
	var own, restricted windows.Token
	const access = windows.TOKEN_DUPLICATE | windows.TOKEN_ASSIGN_PRIMARY | windows.TOKEN_QUERY | windows.TOKEN_ADJUST_DEFAULT
	if err := windows.OpenProcessToken(windows.CurrentProcess(), access, &own); err != nil {
		return 0, err
	}
	defer own.Close()
	create := windows.NewLazySystemDLL("advapi32.dll").NewProc("CreateRestrictedToken")
	if err := create.Find(); err != nil {
		return 0, err
	}
	ok, _, err := create.Call(uintptr(own), withoutPrivileges|asOrdinaryUser, 0, 0, 0, 0, 0, 0, uintptr(unsafe.Pointer(&restricted)))
	if ok == 0 {
		return 0, err
	}
	return restricted, nil
}

// systemFolders and shownFiles are for back ends that hide files.
var systemFolders []string

func shownFiles() []string { return nil }

func (s *Sandbox) refuses(Policy) error { return nil }

func (s *Sandbox) allText(Policy) string { return "every host" }

func (s *Sandbox) notHeld(p Policy) []string {
	return append([]string{
		"files: it can read and write all that you can",
		"network: it can reach every address that you can",
	}, limitsNotHeld(p.Limits)...)
}
