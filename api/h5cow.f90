! h5cow.f90: h5cow.h for Fortran, for programs that know that their files have a history. Compile it with the program;
! nothing but libhdf5 is linked. Described in docs/api.md.
!
! In the style of HDF5's own Fortran interface: HDFERR is 0, or -1 on failure, with the reason on HDF5's error stack.
! FILE_ID is the id of a file, or of any object that is open in it. Texts are UTF-8; of those that are given, blanks at
! the end do not count.
!
! BSD-3-Clause, see LICENSE.
module h5cow
  use, intrinsic :: iso_c_binding
  implicit none
  private

  public :: h5cow_text_t, h5cow_version_t
  public :: h5cow_has_history_f, h5cow_describe_f, h5cow_commit_f, h5cow_version_f, h5cow_versions_f, h5cow_abort_f
  public :: h5cow_restore_f, h5cow_tag_f, h5cow_untag_f, h5cow_rename_f, h5cow_set_message_f
  public :: h5cow_forget_f, h5cow_collect_f

  integer, parameter :: hid_t = c_int64_t   ! as in the module hdf5

  type :: h5cow_text_t
    character(len=:), allocatable :: text
  end type h5cow_text_t

  ! What is recorded of a version: h5cow.h says what each of them is.
  type :: h5cow_version_t
    integer(c_int64_t) :: number = 0, parent = 0
    integer(c_int64_t) :: seconds = 0, nanoseconds = 0
    logical :: unfinished = .false., incomplete = .false., forgotten = .false.
    character(len=:), allocatable :: name, message, user, host, program, hdf5, h5cow
    integer(c_int64_t) :: added = 0, chunks = 0, changed = 0
    type(h5cow_text_t), allocatable :: tags(:)
  end type h5cow_version_t

  ! ---- the structures of h5cow.h ----

  type, bind(c) :: c_version
    integer(c_size_t) :: size
    integer(c_int64_t) :: number, parent, seconds, nanoseconds
    integer(c_int32_t) :: unfinished, incomplete
    type(c_ptr) :: name, message, user, host, program, hdf5, h5cow
    integer(c_int64_t) :: added, chunks, changed
    integer(c_size_t) :: tag_count
    type(c_ptr) :: tags
    integer(c_int32_t) :: forgotten
  end type c_version

  type, bind(c) :: c_state
    integer(c_size_t) :: size = 0, version_size = 0
    type(c_ptr) :: version = c_null_ptr
    integer(c_int32_t) :: old_version = 0, uncommitted = 0
  end type c_state

  type, bind(c) :: c_list
    integer(c_size_t) :: size = 0, version_size = 0, count = 0
    type(c_ptr) :: versions = c_null_ptr
  end type c_list

  type, bind(c) :: c_description
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr, message = c_null_ptr
  end type c_description

  type, bind(c) :: c_commit
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: number = 0
  end type c_commit

  type, bind(c) :: c_abort
    integer(c_size_t) :: size = 0
  end type c_abort

  type, bind(c) :: c_restore
    integer(c_size_t) :: size = 0
    type(c_ptr) :: revision = c_null_ptr
    integer(c_size_t) :: path_count = 0
    type(c_ptr) :: paths = c_null_ptr
    integer(c_int32_t) :: dry_run = 0, force = 0
    type(c_ptr) :: tell = c_null_ptr, context = c_null_ptr
    integer(c_int64_t) :: number = 0
    integer(c_int32_t) :: differs = 0, kind = 0
  end type c_restore

  type, bind(c) :: c_forget
    integer(c_size_t) :: size = 0, count = 0
    type(c_ptr) :: revisions = c_null_ptr
    integer(c_int32_t) :: kind = 0, dry_run = 0
    integer(c_int64_t) :: forgotten = 0
  end type c_forget

  type, bind(c) :: c_collect
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: chunks = 0, bytes = 0, holes = 0
  end type c_collect

  type, bind(c) :: c_naming
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: what = 0, force = 0
    type(c_ptr) :: revision = c_null_ptr, text = c_null_ptr
  end type c_naming

  ! ---- what is called of libhdf5 ----

  type, bind(c) :: optional_args
    integer(c_int) :: op_type = 0
    type(c_ptr) :: args = c_null_ptr
  end type optional_args

  type, bind(c) :: error_record   ! H5E_error2_t
    integer(hid_t) :: class, major, minor
    integer(c_int) :: line
    type(c_ptr) :: func_name, file_name, desc
  end type error_record

  integer(c_int), parameter :: subclass_file = 6, type_file = 1, walk_upward = 0
  integer(c_int64_t), parameter :: query_supported = 1
  integer(hid_t), parameter :: default_stack = 0, default_list = 0, no_event_set = 0

  interface
    integer(c_int) function find_operation(subclass, name, number) bind(c, name='H5VLfind_opt_operation')
      import
      integer(c_int), value :: subclass
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), intent(out) :: number
    end function find_operation

    integer(c_int) function query_optional(id, subclass, number, flags) bind(c, name='H5VLquery_optional')
      import
      integer(hid_t), value :: id
      integer(c_int), value :: subclass, number
      integer(c_int64_t), intent(out) :: flags
    end function query_optional

    integer(c_int) function file_optional(source, caller, line, id, args, dxpl, es) bind(c, name='H5VLfile_optional_op')
      import
      character(kind=c_char), intent(in) :: source(*), caller(*)
      integer(c_int), value :: line
      integer(hid_t), value :: id, dxpl, es
      type(optional_args), intent(inout) :: args
    end function file_optional

    integer(c_intptr_t) function connector_name(id, name, size) bind(c, name='H5VLget_connector_name')
      import
      integer(hid_t), value :: id
      character(kind=c_char), intent(inout) :: name(*)
      integer(c_size_t), value :: size
    end function connector_name

    integer(c_int) function type_of(id) bind(c, name='H5Iget_type')
      import
      integer(hid_t), value :: id
    end function type_of

    integer(hid_t) function file_of(id) bind(c, name='H5Iget_file_id')
      import
      integer(hid_t), value :: id
    end function file_of

    integer(c_int) function close_file(id) bind(c, name='H5Fclose')
      import
      integer(hid_t), value :: id
    end function close_file

    integer(c_int) function free_memory(memory) bind(c, name='H5free_memory')
      import
      type(c_ptr), value :: memory
    end function free_memory

    integer(hid_t) function take_stack() bind(c, name='H5Eget_current_stack')
      import
    end function take_stack

    integer(c_int) function put_stack(stack) bind(c, name='H5Eset_current_stack')
      import
      integer(hid_t), value :: stack
    end function put_stack

    integer(c_int) function clear_stack(stack) bind(c, name='H5Eclear2')
      import
      integer(hid_t), value :: stack
    end function clear_stack

    integer(c_int) function walk_stack(stack, direction, visit, context) bind(c, name='H5Ewalk2')
      import
      integer(hid_t), value :: stack
      integer(c_int), value :: direction
      type(c_funptr), value :: visit
      type(c_ptr), value :: context
    end function walk_stack

    ! H5Epush2 takes any number of arguments, which Fortran cannot call
    integer(c_int) function push_error(source, caller, line, major, minor, text) bind(c, name='H5Epush1')
      import
      character(kind=c_char), intent(in) :: source(*), caller(*), text(*)
      integer(c_int), value :: line
      integer(hid_t), value :: major, minor
    end function push_error

    integer(c_int) function auto_is_second(stack, second) bind(c, name='H5Eauto_is_v2')
      import
      integer(hid_t), value :: stack
      integer(c_int), intent(out) :: second
    end function auto_is_second

    integer(c_int) function get_auto(stack, print, context) bind(c, name='H5Eget_auto2')
      import
      integer(hid_t), value :: stack
      type(c_funptr), intent(out) :: print
      type(c_ptr), intent(out) :: context
    end function get_auto

    integer(c_int) function set_auto(stack, print, context) bind(c, name='H5Eset_auto2')
      import
      integer(hid_t), value :: stack
      type(c_funptr), value :: print
      type(c_ptr), value :: context
    end function set_auto

    integer(c_size_t) function text_length(text) bind(c, name='strlen')
      import
      type(c_ptr), value :: text
    end function text_length
  end interface

  abstract interface
    integer(c_int) function print_errors(stack, context) bind(c)
      import
      integer(hid_t), value :: stack
      type(c_ptr), value :: context
    end function print_errors
  end interface

contains

  ! ---- calling ----

  ! Major and minor number of an error of the VOL: those of one that HDF5 has just made, for Fortran cannot name HDF5's
  ! variables.
  integer(c_int) function note_record(n, record, context) bind(c)
    integer(c_int), value :: n
    type(error_record), intent(in) :: record
    type(c_ptr), value :: context
    integer(hid_t), pointer :: ids(:)

    call c_f_pointer(context, ids, [2])
    ids = [record%major, record%minor]
    note_record = 0 * n
  end function note_record

  subroutine explain(caller, text)
    character(len=*), intent(in) :: caller, text
    integer(hid_t), target :: ids(2)
    integer(c_int) :: ignored, number

    ids = -1
    ignored = find_operation(subclass_file, 'h5cow: there is none of this name' // c_null_char, number)
    ignored = walk_stack(default_stack, walk_upward, c_funloc(note_record), c_loc(ids))
    ignored = clear_stack(default_stack)
    if (ids(1) >= 0) ignored = push_error('h5cow.f90' // c_null_char, caller // c_null_char, 0_c_int, ids(1), ids(2), &
                                          text // c_null_char)
  end subroutine explain

  ! The file of ID, and the number of OPERATION on it. WHY is allocated where there is none.
  subroutine find(id, operation, file, number, why)
    integer(hid_t), intent(in) :: id
    character(len=*), intent(in) :: operation
    integer(hid_t), intent(out) :: file
    integer(c_int), intent(out) :: number
    character(len=:), allocatable, intent(out) :: why
    character(len=*), parameter :: elsewhere = 'the file is not open through h5cow: run the program with &
      &HDF5_VOL_CONNECTOR=h5cow, or by ''h5cow run'''
    character(kind=c_char) :: connector(16)
    integer(c_int64_t) :: flags

    number = 0
    file = id
    if (type_of(id) /= type_file) file = file_of(id)
    if (file < 0) then
      why = 'this is not the id of a file, or of an object in one'
    else if (find_operation(subclass_file, operation // c_null_char, number) < 0) then
      why = elsewhere
      connector = ' '
      if (connector_name(file, connector, 16_c_size_t) == 5) then
        if (all(connector(1:5) == ['h', '5', 'c', 'o', 'w'])) &
          why = 'the h5cow of this program is too old for this: install a newer one'
      end if
    else if (query_optional(file, subclass_file, number, flags) < 0) then
      why = elsewhere
    else if (iand(flags, query_supported) == 0) then
      why = elsewhere
    end if
  end subroutine find

  ! QUIET: nothing is printed.
  subroutine call_operation(id, caller, operation, argument, quiet, hdferr)
    integer(hid_t), intent(in) :: id
    character(len=*), intent(in) :: caller, operation
    type(c_ptr), intent(in) :: argument
    logical, intent(in) :: quiet
    integer, intent(out) :: hdferr
    character(len=:), allocatable :: why
    procedure(print_errors), pointer :: print
    type(optional_args) :: args
    type(c_funptr) :: printer
    type(c_ptr) :: context
    integer(hid_t) :: file, stack
    integer(c_int) :: second, ignored

    printer = c_null_funptr
    if (auto_is_second(default_stack, second) < 0) second = 0
    if (second /= 0) then
      ignored = get_auto(default_stack, printer, context)
      ignored = set_auto(default_stack, c_null_funptr, c_null_ptr)
    end if
    hdferr = -1
    call find(id, operation, file, args%op_type, why)
    args%args = argument
    if (allocated(why)) then
      call explain(caller, why)
    else if (file_optional('h5cow.f90' // c_null_char, caller // c_null_char, 0_c_int, file, args, default_list, &
                           no_event_set) >= 0) then
      hdferr = 0
    end if
    if (file >= 0 .and. file /= id) then
      stack = -1
      if (hdferr < 0) stack = take_stack()
      if (close_file(file) < 0) hdferr = -1
      if (stack >= 0) ignored = put_stack(stack)
    end if
    if (second /= 0) then
      ignored = set_auto(default_stack, printer, context)
      if (hdferr < 0 .and. .not. quiet .and. c_associated(printer)) then
        call c_f_procpointer(printer, print)
        ignored = print(default_stack, context)
      end if
    end if
  end subroutine call_operation

  ! ---- texts and versions ----

  function fortran_text(text) result(copy)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: copy
    character(kind=c_char), pointer :: characters(:)
    integer :: i

    call c_f_pointer(text, characters, [text_length(text)])
    allocate (character(len=size(characters)) :: copy)
    do i = 1, size(characters)
      copy(i:i) = characters(i)
    end do
  end function fortran_text

  subroutine copy_version(from, to)
    type(c_version), intent(in) :: from
    type(h5cow_version_t), intent(out) :: to
    type(c_ptr), pointer :: tags(:)
    integer :: i

    to%number = from%number
    to%parent = from%parent
    to%seconds = from%seconds
    to%nanoseconds = from%nanoseconds
    to%unfinished = from%unfinished /= 0
    to%incomplete = from%incomplete /= 0
    to%forgotten = from%forgotten /= 0
    to%name = fortran_text(from%name)
    to%message = fortran_text(from%message)
    to%user = fortran_text(from%user)
    to%host = fortran_text(from%host)
    to%program = fortran_text(from%program)
    to%hdf5 = fortran_text(from%hdf5)
    to%h5cow = fortran_text(from%h5cow)
    to%added = from%added
    to%chunks = from%chunks
    to%changed = from%changed
    call c_f_pointer(from%tags, tags, [from%tag_count])
    allocate (to%tags(size(tags)))
    do i = 1, size(tags)
      to%tags(i)%text = fortran_text(tags(i))
    end do
  end subroutine copy_version

  subroutine copy_versions(block, count, versions)
    type(c_ptr), intent(in) :: block
    integer(c_size_t), intent(in) :: count
    type(h5cow_version_t), allocatable, intent(out) :: versions(:)
    type(c_version), pointer :: from(:)
    integer(c_int) :: ignored
    integer :: i

    allocate (versions(count))
    if (count == 0) return
    call c_f_pointer(block, from, [count])
    do i = 1, size(from)
      call copy_version(from(i), versions(i))
    end do
    ignored = free_memory(block)
  end subroutine copy_versions

  ! ---- for programs ----

  ! Has the file a history, and is it open through h5cow? Not so is no error.
  subroutine h5cow_has_history_f(file_id, has, hdferr)
    integer(hid_t), intent(in) :: file_id
    logical, intent(out) :: has
    integer, intent(out) :: hdferr
    type(c_state), target :: state

    state%size = c_sizeof(state)
    call call_operation(file_id, 'h5cow_has_history_f', 'h5cow.version', c_loc(state), .true., hdferr)
    has = hdferr >= 0
    hdferr = 0
  end subroutine h5cow_has_history_f

  ! Name and message of the version to come. What is not present stays as it is; an empty name is the version's number.
  subroutine h5cow_describe_f(file_id, hdferr, name, message)
    integer(hid_t), intent(in) :: file_id
    integer, intent(out) :: hdferr
    character(len=*), intent(in), optional :: name, message
    character(len=:), allocatable, target :: c_name, c_message
    type(c_description), target :: description

    description%size = c_sizeof(description)
    if (present(name)) then
      c_name = trim(name) // c_null_char
      description%name = c_loc(c_name)
    end if
    if (present(message)) then
      c_message = trim(message) // c_null_char
      description%message = c_loc(c_message)
    end if
    call call_operation(file_id, 'h5cow_describe_f', 'h5cow.describe', c_loc(description), .false., hdferr)
  end subroutine h5cow_describe_f

  ! Make a finished version of the changes now. NUMBER is the version's, or 0: there is none.
  subroutine h5cow_commit_f(file_id, hdferr, number)
    integer(hid_t), intent(in) :: file_id
    integer, intent(out) :: hdferr
    integer(c_int64_t), intent(out), optional :: number
    type(c_commit), target :: made

    made%size = c_sizeof(made)
    call call_operation(file_id, 'h5cow_commit_f', 'h5cow.commit', c_loc(made), .false., hdferr)
    if (present(number)) number = made%number
  end subroutine h5cow_commit_f

  ! The version that is open, or the newest one; its number is 0 where there is none yet.
  subroutine h5cow_version_f(file_id, version, hdferr, old_version, uncommitted)
    integer(hid_t), intent(in) :: file_id
    type(h5cow_version_t), intent(out) :: version
    integer, intent(out) :: hdferr
    logical, intent(out), optional :: old_version, uncommitted
    type(h5cow_version_t), allocatable :: versions(:)
    type(c_version) :: sample
    type(c_state), target :: state

    state%size = c_sizeof(state)
    state%version_size = c_sizeof(sample)
    call call_operation(file_id, 'h5cow_version_f', 'h5cow.version', c_loc(state), .false., hdferr)
    if (c_associated(state%version)) then
      call copy_versions(state%version, 1_c_size_t, versions)
      version = versions(1)
    end if
    if (present(old_version)) old_version = state%old_version /= 0
    if (present(uncommitted)) uncommitted = state%uncommitted /= 0
  end subroutine h5cow_version_f

  ! All versions, the oldest first: number N is versions(N).
  subroutine h5cow_versions_f(file_id, versions, hdferr)
    integer(hid_t), intent(in) :: file_id
    type(h5cow_version_t), allocatable, intent(out) :: versions(:)
    integer, intent(out) :: hdferr
    type(c_version) :: sample
    type(c_list), target :: list

    list%size = c_sizeof(list)
    list%version_size = c_sizeof(sample)
    call call_operation(file_id, 'h5cow_versions_f', 'h5cow.versions', c_loc(list), .false., hdferr)
    call copy_versions(list%versions, list%count, versions)
  end subroutine h5cow_versions_f

  ! Drop what was written since the last commit; until the file is closed nothing more can be written.
  subroutine h5cow_abort_f(file_id, hdferr)
    integer(hid_t), intent(in) :: file_id
    integer, intent(out) :: hdferr
    type(c_abort), target :: argument

    argument%size = c_sizeof(argument)
    call call_operation(file_id, 'h5cow_abort_f', 'h5cow.abort', c_loc(argument), .false., hdferr)
  end subroutine h5cow_abort_f

  ! The file, or the object PATH of it, as it was in the version REVISION, for the commit that follows. FORCE: also where something
  ! is lost. DIFFERS: there was something to do.
  subroutine h5cow_restore_f(file_id, revision, hdferr, path, force, differs)
    integer(hid_t), intent(in) :: file_id
    character(len=*), intent(in) :: revision
    integer, intent(out) :: hdferr
    character(len=*), intent(in), optional :: path
    logical, intent(in), optional :: force
    logical, intent(out), optional :: differs
    character(len=:), allocatable, target :: c_revision, c_path
    type(c_ptr), target :: paths(1)
    type(c_restore), target :: request

    request%size = c_sizeof(request)
    c_revision = trim(revision) // c_null_char
    request%revision = c_loc(c_revision)
    if (present(path)) then
      c_path = trim(path) // c_null_char
      paths(1) = c_loc(c_path)
      request%paths = c_loc(paths)
      request%path_count = 1
    end if
    if (present(force)) request%force = merge(1, 0, force)
    call call_operation(file_id, 'h5cow_restore_f', 'h5cow.restore', c_loc(request), .false., hdferr)
    if (present(differs)) differs = request%differs /= 0
  end subroutine h5cow_restore_f

  subroutine change_name(file_id, function, what, move, revision, text, hdferr)
    integer(hid_t), intent(in) :: file_id
    character(len=*), intent(in) :: function, revision, text
    integer(c_int32_t), intent(in) :: what
    logical, intent(in) :: move
    integer, intent(out) :: hdferr
    character(len=:), allocatable, target :: c_revision, c_text
    type(c_naming), target :: naming

    naming%size = c_sizeof(naming)
    naming%what = what
    naming%force = merge(1, 0, move)
    c_revision = trim(revision) // c_null_char
    c_text = trim(text) // c_null_char
    naming%revision = c_loc(c_revision)
    naming%text = c_loc(c_text)
    call call_operation(file_id, function, 'h5cow.name', c_loc(naming), .false., hdferr)
  end subroutine change_name

  ! The version may be opened as FILE@TAG as well. MOVE: the tag may lead to another version so far.
  subroutine h5cow_tag_f(file_id, revision, tag, hdferr, move)
    integer(hid_t), intent(in) :: file_id
    character(len=*), intent(in) :: revision, tag
    integer, intent(out) :: hdferr
    logical, intent(in), optional :: move
    logical :: moved

    moved = .false.
    if (present(move)) moved = move
    call change_name(file_id, 'h5cow_tag_f', 1, moved, revision, tag, hdferr)
  end subroutine h5cow_tag_f

  subroutine h5cow_untag_f(file_id, tag, hdferr)
    integer(hid_t), intent(in) :: file_id
    character(len=*), intent(in) :: tag
    integer, intent(out) :: hdferr

    call change_name(file_id, 'h5cow_untag_f', 2, .false., '', tag, hdferr)
  end subroutine h5cow_untag_f

  subroutine h5cow_rename_f(file_id, revision, name, hdferr)
    integer(hid_t), intent(in) :: file_id
    character(len=*), intent(in) :: revision, name
    integer, intent(out) :: hdferr

    call change_name(file_id, 'h5cow_rename_f', 3, .false., revision, name, hdferr)
  end subroutine h5cow_rename_f

  subroutine h5cow_set_message_f(file_id, revision, message, hdferr)
    integer(hid_t), intent(in) :: file_id
    character(len=*), intent(in) :: revision, message
    integer, intent(out) :: hdferr

    call change_name(file_id, 'h5cow_set_message_f', 4, .false., revision, message, hdferr)
  end subroutine h5cow_set_message_f

  ! The versions REVISIONS go. DRY_RUN: only ask whether they may. FORGOTTEN: how many.
  subroutine h5cow_forget_f(file_id, revisions, hdferr, dry_run, forgotten)
    integer(hid_t), intent(in) :: file_id
    character(len=*), intent(in) :: revisions(:)
    integer, intent(out) :: hdferr
    logical, intent(in), optional :: dry_run
    integer(c_int64_t), intent(out), optional :: forgotten
    character(len=len(revisions) + 1), allocatable, target :: texts(:)
    type(c_ptr), allocatable, target :: pointers(:)
    type(c_forget), target :: request
    integer :: i

    allocate (texts(size(revisions)), pointers(size(revisions)))
    do i = 1, size(revisions)
      texts(i) = trim(revisions(i)) // c_null_char
      pointers(i) = c_loc(texts(i))
    end do
    request%size = c_sizeof(request)
    request%count = size(revisions)
    if (size(revisions) > 0) request%revisions = c_loc(pointers)
    if (present(dry_run)) request%dry_run = merge(1, 0, dry_run)
    call call_operation(file_id, 'h5cow_forget_f', 'h5cow.forget', c_loc(request), .false., hdferr)
    if (present(forgotten)) forgotten = request%forgotten
  end subroutine h5cow_forget_f

  ! What no version and nothing of the head needs becomes free: places of chunks, bytes of these, bytes of holes in the file.
  subroutine h5cow_collect_f(file_id, hdferr, chunks, bytes, holes)
    integer(hid_t), intent(in) :: file_id
    integer, intent(out) :: hdferr
    integer(c_int64_t), intent(out), optional :: chunks, bytes, holes
    type(c_collect), target :: answer

    answer%size = c_sizeof(answer)
    call call_operation(file_id, 'h5cow_collect_f', 'h5cow.collect', c_loc(answer), .false., hdferr)
    if (present(chunks)) chunks = answer%chunks
    if (present(bytes)) bytes = answer%bytes
    if (present(holes)) holes = answer%holes
  end subroutine h5cow_collect_f

end module h5cow
