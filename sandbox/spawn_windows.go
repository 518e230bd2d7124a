package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// child is a started process and its job: every process below it is in the job,
// and the job ends with its last handle, so also when this program is killed.
type child struct {
	proc  *os.Process
	ended chan struct{} // closed when the process has ended

	state *os.ProcessState // set before ended is closed
	mu    sync.Mutex       // keeps uses of job and its end apart
	job   windows.Handle   // 0 when closed
}

// cmdSpecial are the characters that cmd.exe reads in the arguments of a batch
// file whatever the quoting.
const cmdSpecial = "\"&|<>^%!()\r\n"

// spawn starts path suspended, puts it into a job with the limits, and lets it
// run. The system hands over the three streams and no other handle.
func spawn(path string, c Command, files [3]*os.File, l Limits) (*child, error) {
	return spawnAs(0, path, c, files, l)
}

// spawnAs is spawn with another token than our own, 0 for our own.
func spawnAs(token syscall.Token, path string, c Command, files [3]*os.File, l Limits) (*child, error) {
	ext := strings.ToLower(filepath.Ext(path))
	if (ext == ".bat" || ext == ".cmd") && strings.ContainsAny(strings.Join(c.Argv[1:], ""), cmdSpecial) {
		return nil, &StartError{Program: program(c), Problem: "an argument holds characters that a batch file would execute", Err: errCommand}
	}
	job, err := newJob(l)
	if err != nil {
		return nil, err
	}
	env := c.Env
	if env == nil {
		env = []string{} // nil would mean our own environment
	}
	proc, err := os.StartProcess(path, c.Argv, &os.ProcAttr{Dir: c.Dir, Env: env, Files: files[:], Sys: &syscall.SysProcAttr{
		Token:         token,
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW,
	}})
	if err != nil {
		_ = windows.CloseHandle(job)
		return nil, explain(program(c), path, err)
	}
	if err := enter(job, proc.Pid); err != nil {
		_ = proc.Kill()
		_, _ = proc.Wait()
		_ = windows.CloseHandle(job)
		return nil, &UnenforceableError{What: "the end of the whole tree", Why: err.Error()}
	}
	ch := &child{proc: proc, job: job, ended: make(chan struct{})}
	go func() {
		ch.state, _ = proc.Wait()
		close(ch.ended)
	}()
	return ch, nil
}

// newJob makes a job that ends its processes when its last handle is closed.
func newJob(l Limits) (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, &UnenforceableError{What: "the end of the whole tree", Why: err.Error()}
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	basic := &info.BasicLimitInformation
	basic.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION
	if l.Memory > 0 {
		basic.LimitFlags |= windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY
		info.ProcessMemoryLimit = uintptr(l.Memory)
	}
	if l.Processes > 0 {
		basic.LimitFlags |= windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS
		basic.ActiveProcessLimit = uint32(l.Processes)
	}
	if l.CPU > 0 {
		basic.LimitFlags |= windows.JOB_OBJECT_LIMIT_PROCESS_TIME
		basic.PerProcessUserTimeLimit = int64(l.CPU / (100 * time.Nanosecond))
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		_ = windows.CloseHandle(job)
		return 0, &UnenforceableError{What: "the limits", Why: err.Error()}
	}
	return job, nil
}

// enter puts the suspended process into job and resumes it.
func enter(job windows.Handle, pid int) error {
	h, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(h)
	if err := windows.AssignProcessToJobObject(job, h); err != nil {
		return err
	}
	return resume(uint32(pid))
}

// resume lets the only thread of the suspended process run; its handle is not
// kept by the standard library, so it is looked for.
func resume(pid uint32) error {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(snapshot)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	for err = windows.Thread32First(snapshot, &entry); err == nil; err = windows.Thread32Next(snapshot, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		defer windows.CloseHandle(thread)
		_, err = windows.ResumeThread(thread)
		return err
	}
	return fmt.Errorf("looking for the thread to resume: %w", err)
}

// reap takes the exit status and closes the job; only after ended.
func (c *child) reap() (code int, signal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = windows.CloseHandle(c.job)
	c.job = 0
	if c.state == nil {
		return -1, ""
	}
	return c.state.ExitCode(), ""
}

// terminate does nothing: there is no polite signal for a process without a
// window or a console of ours. Closing standard input was the polite step.
func (c *child) terminate() {}

// kill ends every process of the job.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.job != 0 {
		_ = windows.TerminateJobObject(c.job, 1)
	}
}

// jobAccounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type jobAccounting struct {
	TotalUserTime, TotalKernelTime, PeriodUserTime, PeriodKernelTime    int64
	PageFaults, TotalProcesses, ActiveProcesses, TotalTerminatedProcess uint32
}

// others counts the processes of the job besides the started one, which has
// ended when this is asked.
func (c *child) others() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	const basicAccounting = 1 // JobObjectBasicAccountingInformation
	var info jobAccounting
	if c.job == 0 || windows.QueryInformationJobObject(c.job, basicAccounting,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil) != nil {
		return 0
	}
	return int(info.ActiveProcesses)
}

// limitsNotHeld lists what of l does not hold here.
func limitsNotHeld(l Limits) []string {
	if l.FileSize > 0 || l.Files > 0 {
		return []string{"file size and open files: this system has no such limits"}
	}
	return nil
}

func wrongFormat(err error) bool { return errors.Is(err, windows.ERROR_BAD_EXE_FORMAT) }
